"""Documents for JSON schemas: they are valid, and hold the facts."""

from typing import Any

import pytest

from memoranda.testing.scripted.schema_filler import Material, SchemaFillerError, fill_schema

pytestmark = pytest.mark.slow

jsonschema: Any = pytest.importorskip("jsonschema")

FACT_LIST = {
    "$defs": {
        "Kind": {"enum": ["world", "experience"]},
        "Fact": {
            "type": "object",
            "properties": {
                "what": {"type": "string"},
                "when": {"type": "string"},
                "kind": {"$ref": "#/$defs/Kind"},
                "entities": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            },
            "required": ["what", "when", "kind"],
            "additionalProperties": False,
        },
    },
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"$ref": "#/$defs/Fact"}}},
    "required": ["facts"],
}
SCHEMAS: list[dict[str, Any]] = [
    {},
    FACT_LIST,
    {"const": 5},
    {"enum": ["b", "a"]},
    {"type": ["null", "integer"], "minimum": 3},
    {"type": "integer", "exclusiveMinimum": 4, "multipleOf": 7},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    {"type": "number", "maximum": -2.5},
    {"type": "string", "minLength": 9, "maxLength": 10},
    {"type": "string", "pattern": r"^[A-F0-9]{8}-(?:x|y)[^a]\d+\w*$"},
    {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?)?Z?$"},
    {"type": "string", "format": "date-time"},
    {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "uniqueItems": True},
    {"type": "array", "items": {"enum": ["x", "y", "z"]}, "minItems": 3, "uniqueItems": True},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False, "minItems": 2},
    {"type": "array", "contains": {"type": "integer", "minimum": 9}},
    {"type": "array", "items": {"type": "string"}, "maxItems": 1},
    {"oneOf": [{"type": "null"}, {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}]},
    {"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"required": ["b"], "type": "object"}]},
    {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2},
    {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "maxLength": 12}}},
    {"type": "object", "properties": {"self": {"$ref": "#"}, "tags": {"type": "array", "items": {"type": "string"}}}},
]


def test_a_document_is_valid_under_its_schema() -> None:
    """With and without facts."""
    for schema in SCHEMAS:
        for material in [Material(), Material(("Ann lives in Basel.", "Bo has a cat."), "Basel", "Where?")]:
            jsonschema.validate(fill_schema(schema, material), schema)


def test_a_list_has_one_item_per_fact() -> None:
    """The text of an item is its fact; other texts are empty phrases."""
    filled = fill_schema(FACT_LIST, Material(("Ann lives in Basel.", "Bo has a cat.")))
    assert [(fact["what"], fact["when"], fact["kind"]) for fact in filled["facts"]] == [
        ("Ann lives in Basel.", "N/A", "world"),
        ("Bo has a cat.", "N/A", "world"),
    ]


def test_single_texts_hold_the_answer_and_the_question() -> None:
    """By the name of the property."""
    names = ("answer", "query")
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": list(names)}
    assert fill_schema(schema, Material((), "In Basel.", "Where?")) == {"answer": "In Basel.", "query": "Where?"}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/missing"},
        {"$ref": "#"},
        {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]},
        {"type": "string", "pattern": "^(?=b)a$"},
        {"type": "integer", "minimum": 5, "maximum": 4},
    ],
)
def test_a_schema_without_a_known_document_is_an_error(schema: dict[str, Any]) -> None:
    """Not an invalid document."""
    with pytest.raises(SchemaFillerError):
        fill_schema(schema)
