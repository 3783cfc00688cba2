"""What takes the place of a framework's classes where its package is not installed.

So an adapter can be imported, documented and checked without the framework; only its use says what to install.
"""

from typing import Any


def missing_framework(extra: str, error: ModuleNotFoundError) -> Any:
    """A class to inherit from and to refer to; every use of it raises ImportError and names the extra to install."""

    def refuse() -> ImportError:
        message = f"The package {error.name!r} is not installed. Install it with: pip install 'memoranda[{extra}]'"
        return ImportError(message, name=error.name)

    class Missing(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            raise refuse() from error

        def __getitem__(cls, parameters: Any) -> Any:
            return cls

        def __getattr__(cls, name: str) -> Any:
            # Python looks for names with underscores, and a dataclass for the names of its fields.
            raise AttributeError(name) if name.startswith("_") or cls.__mro__[1:-1] else refuse()

    return Missing("MissingFramework", (), {})
