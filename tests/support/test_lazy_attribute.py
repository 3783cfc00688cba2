"""An attribute that is computed when it is first read."""

import pytest

from memoranda.support.lazy_attribute import lazy_attribute

pytestmark = pytest.mark.slow


class Circle:
    def __init__(self) -> None:
        self.computed = 0

    @lazy_attribute
    def area(self) -> float:
        """How large it is."""
        self.computed += 1
        return 3.0


def test_it_is_computed_once_for_each_object() -> None:
    """Reading it again costs a look into the object."""
    first, second = Circle(), Circle()
    assert (first.area, first.area, second.area) == (3.0, 3.0, 3.0)
    assert (first.computed, second.computed) == (1, 1)


def test_it_is_not_computed_before_it_is_read() -> None:
    """Which is what it is for."""
    assert Circle().computed == 0


def test_the_first_value_stays_when_two_threads_compute_it() -> None:
    """The second thread gets the value of the first."""

    class Raced:
        @lazy_attribute
        def value(self) -> str:
            self.__dict__["value"] = "first"
            return "second"

    assert Raced().value == "first"


def test_it_has_the_documentation_of_its_function() -> None:
    """As a property has."""
    assert Circle.area.__doc__ == "How large it is."
