"""The client of a service on another machine, with the interface of the library: see `memory` and `async_memory`."""
