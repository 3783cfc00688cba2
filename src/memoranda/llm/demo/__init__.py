"""A model that is none: rules in place of weights, so that everything can be tried without a key or a network."""

from memoranda.llm.demo.model import DemoModel as DemoModel
