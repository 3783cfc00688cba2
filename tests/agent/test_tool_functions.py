"""A typed function becomes a tool: its docstring is what the model reads, its annotations are the schema."""

import enum
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest

import memoranda
from memoranda import Tool, tool

pytestmark = pytest.mark.slow


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(TypedDict):
    street: str
    floor: NotRequired[int]


@tool
def order(
    item: Annotated[str, "What to order."],
    count: int = 1,
    *,
    size: Literal["small", "large"] = "small",
    colour: Colour = Colour.RED,
    tags: list[str] | None = None,
    address: Address | None = None,
    options: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Order something.

    Only when the user asked for it.
    """
    given = {"item": item, "count": count, "size": size, "colour": colour.name, "tags": tags, "options": options}
    return given | {"street": address["street"] if address else None}


def test_the_schema_is_that_of_the_annotations() -> None:
    """Defaults make parameters optional, Annotated describes them."""
    text = {"type": "string"}
    assert isinstance(order, Tool)
    assert (order.name, order.description) == ("order", "Order something.\n\nOnly when the user asked for it.")
    assert order.parameters == {
        "type": "object",
        "properties": {
            "item": {"type": "string", "description": "What to order."},
            "count": {"type": "integer", "default": 1},
            "size": {"type": "string", "enum": ["small", "large"], "default": "small"},
            "colour": {"type": "string", "enum": ["red", "blue"]},
            "tags": {"anyOf": [{"type": "array", "items": text}, {"type": "null"}]},
            "address": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {"street": text, "floor": {"type": "integer"}},
                        "required": ["street"],
                    },
                    {"type": "null"},
                ]
            },
            "options": {"anyOf": [{"type": "object", "additionalProperties": {"type": "number"}}, {"type": "null"}]},
        },
        "required": ["item"],
        "additionalProperties": False,
    }


def test_the_function_is_called_with_values_of_its_types() -> None:
    """It gets an Enum member for a value, and a whole number where the model wrote 2.0."""
    answer = order.call({"item": "rye", "count": 2.0, "colour": "blue", "tags": ["a"], "address": {"street": "Elm"}})
    assert answer == {
        "success": True, "item": "rye", "count": 2, "size": "small", "colour": "BLUE", "tags": ["a"], "options": None,
        "street": "Elm",
    }  # fmt: skip
    assert isinstance(answer["count"], int)


@pytest.mark.parametrize(
    "arguments", [None, [], {}, {"item": 1}, {"item": "rye", "cuont": 2}, {"item": "x", "colour": 1}]
)
def test_wrong_arguments_are_answered_and_nothing_is_called(arguments: Any) -> None:
    """A tool never raises."""
    answer = order.call(arguments)
    assert (answer["success"], answer["reason"]) == (False, "invalid")


def test_an_error_in_the_function_becomes_a_result(caplog: pytest.LogCaptureFixture) -> None:
    """The developer finds the traceback in the log."""

    @tool(name="divide", description="Divide by a number.")
    def function(by: float) -> float:
        return 1 / by

    assert function.call({"by": 4}) == {"success": True, "result": 0.25}
    with caplog.at_level(logging.ERROR):
        assert function.call({"by": 0})["error"] == "The tool divide failed: ZeroDivisionError: float division by zero"
    assert "Traceback" in caplog.text


def test_results_of_any_kind_become_json_objects() -> None:
    """This includes None, a value, and an object with or without `success`."""

    def answer(what: Literal["none", "text", "object", "failure"]) -> Any:
        """Answer."""
        return {"none": None, "text": "x", "object": {"a": 1}, "failure": {"success": False, "error": "no"}}[what]

    made = tool(answer)
    assert made.call({"what": "none"}) == {"success": True}
    assert made.call({"what": "text"}) == {"success": True, "result": "x"}
    assert made.call({"what": "object"}) == {"success": True, "a": 1}
    assert made.call({"what": "failure"}) == {"success": False, "error": "no"}


def test_lists_of_every_kind_are_lists_in_json() -> None:
    """The function gets the kind that it names."""

    def collect(
        one: set[Colour], two: tuple[int, ...], three: Sequence[float], four: list[Any], five: int | str
    ) -> str:
        """Collect."""
        return repr((one, two, three, four, five))

    given = {"one": ["red", "red"], "two": [1, 2], "three": [1], "four": [None], "five": "5"}
    assert tool(collect).call(given)["result"] == repr(({Colour.RED}, (1, 2), [1.0], [None], "5"))


def _no_docstring(x: int) -> None: ...


def _no_type(x) -> None:  # type: ignore[no-untyped-def]
    """It has no type."""


def _any_number(*x: int) -> None:
    """It takes any number."""


def _file(x: bytes) -> None:
    """It takes bytes."""


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (_no_docstring, "needs a docstring"),
        (_no_type, "has no type"),
        (_any_number, "cannot be passed by name"),
        (_file, "which JSON cannot express"),
    ],
)
def test_a_function_that_no_model_could_call_is_refused_at_once(function: Callable[..., Any], problem: str) -> None:
    """It is refused when the tool is made, not when it is called."""
    with pytest.raises(TypeError, match=problem):
        memoranda.tool(function)
