"""The OpenAPI 3.1 description of the service, made from the same table of routes that answers the requests."""

from collections.abc import Sequence
from http import HTTPStatus

from memoranda import __version__
from memoranda.service.http.problems import MEDIA_TYPE
from memoranda.service.http.route import JSON, Example, Route
from memoranda.service.http.shapes import Field, Object, Text, Whole
from memoranda.support.tool import JsonObject

_PROBLEM = Object(
    (
        Field("type", Text(), "Always about:blank.", required=True),
        Field("title", Text(), "The status in words.", required=True),
        Field("status", Whole(100, 599), "The status of the answer.", required=True),
        Field("reason", Text(), "One word for programs; it does not change.", required=True),
        Field("detail", Text(0, 100_000), "A sentence for people: what happened, and what to do next.", required=True),
        Field("request_id", Text(), "The id of the request, which the service's log has, too.", required=True),
    ),
    extra=True,
    name="Problem",
)
_DESCRIPTION = (
    "Sessions, messages, search and curated memory of a Memoranda home. Send an API key as `Authorization: Bearer`, "
    "`Authorization: Token` or `X-API-Key`. Every error is `application/problem+json`."
)
_KEY_HEADERS = {"Idempotency-Key": "The same request with the same key is done once, within a day."}
_MATCH_HEADERS = {"If-Match": "The ETag of what the request is about."}
_COMMON_PROBLEMS = (400, 413, 414, 415, 422, 431, 500, 503)
_KEY_PROBLEMS = (401, 403, 421, 429)


def describe_api(routes: Sequence[Route]) -> JsonObject:
    """The whole description, ready for JSON."""
    described = _Description()
    paths: JsonObject = {}
    for route in routes:
        if route.documented:
            paths.setdefault(route.path, {})[route.method.lower()] = described.operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Memoranda",
            "version": __version__,
            "summary": "A memory for AI agents.",
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": described.schemas,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer"},
                "keyHeader": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
    }


class _Description:
    """Collects the schemas that operations refer to by name."""

    def __init__(self) -> None:
        self.schemas: JsonObject = {}

    def operation(self, route: Route) -> JsonObject:
        operation: JsonObject = {
            "operationId": route.name,
            "summary": route.summary,
            "description": f"Needs the scope `{route.scope}`." if route.scope else "Needs no key.",
            "tags": [route.tag],
            "parameters": self._parameters(route),
            "responses": self._responses(route),
            "security": [{"key": []}, {"keyHeader": []}] if route.scope else [],
        }
        if route.body is not None:
            content: JsonObject = {"schema": route.body.schema(self.schemas)}
            if route.body_type != JSON:
                content = {"schema": {"type": "string"}}
            elif route.example is not None and route.example.body is not None:
                content["example"] = route.example.body
            operation["requestBody"] = {"required": True, "content": {route.body_type: content}}
        return operation

    def _parameters(self, route: Route) -> list[JsonObject]:
        example = route.example or Example()
        found = [
            _parameter(
                name, "path", Text(1, 1_000).schema(self.schemas), "", required=True, example=example.path.get(name)
            )
            for name in route.path_names
        ]
        found += [
            _parameter(
                field.name,
                "query",
                field.shape.schema(self.schemas),
                field.meaning,
                required=field.required,
                example=example.query.get(field.name),
            )
            for field in route.parameters
        ]
        headers = (_KEY_HEADERS if route.idempotent else {}) | (_MATCH_HEADERS if route.conditional else {})
        return found + [
            _parameter(name, "header", {"type": "string"}, meaning, example=example.headers.get(name))
            for name, meaning in headers.items()
        ]

    def _responses(self, route: Route) -> JsonObject:
        success: JsonObject = {"description": HTTPStatus(route.status).phrase}
        if route.answer is not None:
            content: JsonObject = {"schema": route.answer.schema(self.schemas)}
            if route.example is not None and route.example.answer is not None:
                content["example"] = route.example.answer
            success["content"] = {route.media_type: content}
        elif route.status != 204:
            success["content"] = {route.media_type.partition(";")[0]: {"schema": {"type": "string"}}}
        responses: JsonObject = {str(route.status): success}
        for status in route.other_statuses:
            responses[str(status)] = success | {"description": HTTPStatus(status).phrase}
        problem = {MEDIA_TYPE: {"schema": _PROBLEM.schema(self.schemas)}}
        common = (*_COMMON_PROBLEMS, *(_KEY_PROBLEMS if route.scope else ()), *((408,) if route.body else ()))
        for status in sorted({*common, *route.problems}):
            responses[str(status)] = {"description": HTTPStatus(status).phrase, "content": problem}
        return responses


def _parameter(
    name: str, place: str, schema: JsonObject, meaning: str, *, required: bool = False, example: object = None
) -> JsonObject:
    described: JsonObject = {"name": name, "in": place, "required": required, "schema": schema}
    described |= {"description": meaning} if meaning else {}
    return described | ({} if example is None else {"example": example})
