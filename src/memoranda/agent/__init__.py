"""A small agent over the public face: one turn is record, recall, ask, act, record, hand over."""
