"""OpenTelemetry: one span per request, sent to the collector that the environment names; off without one."""

from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memoranda.errors import ConfigError
from memoranda.home.config.environment import is_set
from memoranda.service.http.endpoint import STATE, RequestState

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def with_telemetry(app: ASGIApp) -> ASGIApp:
    """The application, traced if the environment names a collector; raises ConfigError without the extra."""
    if not any(map(is_set, _VARIABLES)):
        return app
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{_VARIABLES[0]} is set, and OpenTelemetry is not installed: pip install 'memoranda[telemetry]'."
        ) from error
    provider = TracerProvider(resource=Resource.create({"service.name": "memoranda"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return TracedApp(app, provider)


class TracedApp:
    """Starts a span for each request. Its attributes are the route and the status, never ids, names or texts."""

    def __init__(self, app: ASGIApp, provider: "TracerProvider") -> None:
        self._app = app
        self._tracer = provider.get_tracer("memoranda")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with self._tracer.start_as_current_span(scope["method"]) as span:

            async def send_traced(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                await send(message)

            await self._app(scope, receive, send_traced)
            span.set_attribute("http.request.method", scope["method"])
            state = scope.get(STATE)
            if isinstance(state, RequestState) and state.route:
                span.update_name(f"{scope['method']} {state.route}")
                span.set_attribute("http.route", state.route)
