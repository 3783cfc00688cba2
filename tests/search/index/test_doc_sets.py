"""Sets of documents, compared with plain Python sets."""

import random
from array import array
from itertools import pairwise

import pytest

from memoranda.search.index.doc_sets import (
    BLOCK,
    DocSet,
    WeighedDocs,
    decode,
    difference,
    encode,
    from_docs,
    intersection,
    masks_of,
    newest,
    to_runs,
    union,
)

pytestmark = pytest.mark.slow


def some_docs(count: int, seed: int, end: int = 3 * BLOCK) -> set[int]:
    return set(random.Random(seed).sample(range(end), count))


@pytest.mark.parametrize("count", [1, 40, 256, 257, 1_500, 30_000])
def test_a_stored_set_reads_back_as_it_was(count: int) -> None:
    """A list, compressed bits and plain bits give the offsets that were stored, in a segment that begins anywhere."""
    first, end = 9_001, 9_001 + max(count, 40_000)
    offsets = sorted(random.Random(count).sample(range(first, end), count))
    stored, data = encode(array("H", offsets), first, end)
    docs = DocSet({0: int.from_bytes(decode(stored, data, first, end), "little")})
    assert stored == count
    assert list(newest(docs)) == offsets[::-1]


@pytest.mark.parametrize("share", [8, 16, 32])
def test_a_set_of_an_eighth_of_the_documents_takes_less_room_than_its_bits(share: int) -> None:
    """Sets of such words are most of the bytes of postings, so their plain bits would make the index much larger."""
    docs = random.Random(share).sample(range(BLOCK), BLOCK // share)
    _, data = encode(array("H", sorted(docs)), 0, BLOCK)
    assert len(data) < 0.9 * BLOCK / 8


def test_a_set_tells_its_documents_one_by_one() -> None:
    """`has_doc` and `keep` agree with a plain set, also beyond the last document of a block, with flags or without."""
    plain = some_docs(5_000, 1) - set(range(BLOCK + 60_000, 2 * BLOCK))
    bits = from_docs(plain)
    flags = {block: bits.flags(block) for block in bits}
    generator = random.Random(2)
    for docs in (bits, DocSet(bits, flags), DocSet(bits)):
        for _ in range(300):
            first = generator.randrange(3 * BLOCK)
            assert docs.has_doc(first) == (first in plain)
        some = [*generator.sample(range(4 * BLOCK), 500), *generator.sample(sorted(plain), 100)]
        assert docs.keep(some) == [doc for doc in some if doc in plain]


def test_the_masks_of_documents_say_which_sets_contain_them() -> None:
    """`masks_of` agrees with plain sets, for single documents and runs, at the ends of blocks and beyond them."""
    plain = [some_docs(5_000, seed) - set(range(BLOCK + 60_000, 2 * BLOCK)) for seed in range(1, 5)]
    *sets, allowed = map(from_docs, plain)
    generator = random.Random(2)
    starts = [*generator.sample(range(3 * BLOCK), 300), BLOCK - 20, 2 * BLOCK - 3]
    docs = sorted({doc for start in starts for doc in range(start, start + generator.choice((1, 2, 3, 40, 200)))})
    expected = {
        doc: mask
        for doc in docs
        if doc in plain[-1] and (mask := sum(1 << number for number in range(3) if doc in plain[number]))
    }
    assert expected
    assert masks_of(docs, sets, allowed) == expected


def test_runs_are_consecutive_and_within_a_block() -> None:
    """Runs contain exactly the documents, do not touch each other within a block, and never cross its end."""
    plain = some_docs(2_000, 3, 5_000) | set(range(BLOCK - 5, BLOCK + 5))
    runs = to_runs(sorted(plain))
    assert [doc for run in runs for doc in range(*run)] == sorted(plain)
    assert all(first // BLOCK == (end - 1) // BLOCK for first, end in runs)
    assert all(end < first or first % BLOCK == 0 for (_, end), (first, _) in pairwise(runs))
    assert to_runs([]) == []


def test_operations_on_sets_agree_with_plain_sets() -> None:
    """Union, intersection and difference have the documents that plain sets have."""
    left, right = some_docs(3_000, 4), some_docs(3_000, 5) | {3, BLOCK}
    one, other = from_docs(left), from_docs(right)
    assert set(newest(union([one, other]))) == left | right
    assert set(newest(intersection(one, other))) == left & right
    assert set(newest(difference(one, other))) == left - right


@pytest.mark.parametrize("limit", [1, 25, 400, 100_000])
def test_the_heaviest_documents_are_those_with_the_highest_sums(limit: int) -> None:
    """No document that is left out weighs more than one that was chosen, and as many are chosen as there may be."""
    generator = random.Random(limit)
    plain = [(some_docs(4_000, number), generator.randrange(1, 16)) for number in range(6)]
    allowed = some_docs(150_000, 99)
    weighed = WeighedDocs([(from_docs(docs), weight) for docs, weight in plain], from_docs(allowed))
    sums = {doc: sum(w for docs, w in plain if doc in docs) for doc in set().union(*(d for d, _ in plain)) & allowed}
    chosen = weighed.heaviest(weighed.any, limit)
    assert len(chosen) == len(set(chosen)) == min(limit, len(sums))
    lowest = min(sums[doc] for doc in chosen)
    assert all(sums[doc] <= lowest for doc in sums.keys() - chosen)
