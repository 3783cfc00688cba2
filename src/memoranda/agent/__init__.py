"""A small agent over the public API: a turn records, recalls, asks the model, calls tools and delivers the answer."""
