"""Middling words: each is put into 0.4 to 2 % of the messages, so that no single one of them finds a note.

They occur in neither corpus by themselves. A session has a few of its own, which makes some of them occur together.
Standard library only.
"""

import random
from dataclasses import replace
from itertools import accumulate

from benchmarks.growth.conversation import Conversation

_TEXT = """
acorn almond anchor antler apricot arrow attic badger bakery balloon bamboo barley basalt basket beacon beaver
beetle blanket blossom bonfire bottle bracelet breeze brick bronze bucket buckle butterfly cabin cactus candle canoe
canyon caravan carrot castle cedar cellar chalk chapel cherry chestnut chimney cinnamon citadel clover cobweb
coconut compass copper coral cottage cotton cradle crayon cricket crystal cupboard curtain cushion daisy dolphin
donkey dragon drawer eagle eggplant elbow ember emerald falcon feather fiddle flannel flute forge fossil fountain
fox gable garlic geyser ginger glacier goblet goose granite grape gravel hammer hammock harp harvest hazel hedge
helmet heron honey horizon hornet icicle iguana ivory ivy jacket jasmine jigsaw juniper kayak kettle kiln kimono
kitten ladder lagoon lantern lavender lemon lettuce lighthouse lilac linen lobster locket lotus lynx magnet mango
maple marble meadow melon mint mitten moss mushroom mustard nectar needle nest nutmeg oasis oat olive onion orchard
orchid otter owl oyster paddle panther papaya parasol parchment parrot peach peacock pebble pelican penguin pepper
petal pigeon pillow pine pistachio plum pocket pony poppy porcelain pottery prairie puddle pumpkin quarry quartz
quill quilt rabbit raccoon radish raft raisin raven ribbon robin rooster rope rosemary saddle saffron salmon sandal
sapphire satin scarf seashell shovel silk sparrow spinach spoon squirrel stallion statue sugar sunflower swan
tambourine tangerine teapot thimble thistle thunder tiger tomato topaz tortoise trumpet tulip turnip turquoise
umbrella vanilla velvet vinegar violin walnut walrus wardrobe waterfall whistle willow windmill wolf wool yogurt
zebra zinnia
"""
MIDDLING = _TEXT.split()
_WEIGHTS = list(accumulate(1 / (rank + 60) for rank in range(len(MIDDLING))))
_PER_MESSAGE = 3.0
_PER_SESSION = 16


def sprinkle(conversation: Conversation, number: int) -> Conversation:
    """Return the conversation with about three middling words at the end of most of its messages with text."""
    if conversation.chinese:
        return conversation
    rng = random.Random(f"middling/{number}")
    own = rng.choices(MIDDLING, cum_weights=_WEIGHTS, k=_PER_SESSION)
    messages = []
    for message in conversation.messages:
        count = min(6, int(rng.expovariate(1 / _PER_MESSAGE)))
        if message.content and count:
            words = [
                rng.choice(own) if rng.random() < 0.4 else rng.choices(MIDDLING, cum_weights=_WEIGHTS)[0]
                for _ in range(count)
            ]
            messages.append(replace(message, content=f"{message.content} Also {', '.join(words)}."))
        else:
            messages.append(message)
    return replace(conversation, messages=messages)
