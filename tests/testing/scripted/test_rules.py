"""Answers by rules: JSON for every form of request, tool calls, and answers from the context."""

import json
from typing import Any

import pytest

from memoranda.testing.scripted.rules import RuleModel, find_facts
from memoranda.testing.scripted.server import ScriptedServer
from tests.models.conftest import user
from tests.testing.scripted.test_schema_filler import FACT_LIST
from tests.testing.scripted.test_server import post, program

pytestmark = pytest.mark.slow

TOOL = {
    "name": "save_note",
    "parameters": {"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]},
}
ANN = "Ann lives in Basel."


def ask(body: dict[str, Any], model: RuleModel | None = None) -> Any:
    """The message that the server answers with."""
    with ScriptedServer(model or RuleModel()) as server:
        return post(f"{server.openai_url}/chat/completions", {"model": "m"} | body)["choices"][0]["message"]


TURNS = [user(ANN), {"role": "assistant", "content": "She does."}]


@pytest.mark.parametrize(
    "prompt",
    [
        f"{ANN} Where does Bo live?",
        f"## Existing Memories\n[]\n## New Messages\nuser: {ANN}\nassistant: I noted that she does.\n## Date\n2026",
        f"## New Messages\n{json.dumps(TURNS)}",
        f"Extract all the facts.\n\nContent:\n{ANN}",
        f"Analyze.\n<messages>\n2026-01-02T03:04:05Z ann: {ANN}\n2026-01-02 03:04 ai: I know it now.\n</messages>",
        f"### New facts\n\n[5f] {ANN} (mentioned_at=2026-01-02)\n\n### Existing observations\n\n[Bo lives in Graz.]",
    ],
)
def test_facts_are_the_users_statements(prompt: str) -> None:
    """In the forms in which memory servers ask for them."""
    assert find_facts(prompt) == (ANN,)


def test_a_schema_gets_the_facts() -> None:
    """In `response_format`, or in the prompt of a client that can only ask for some JSON object."""
    named = {"type": "json_schema", "json_schema": {"name": "facts", "schema": FACT_LIST}}
    for extra, system in (
        ({"response_format": named}, "Extract."),
        ({}, f"Answer in this form: {json.dumps(FACT_LIST)}"),
    ):
        answer = ask(extra | {"messages": [{"role": "system", "content": system}, user(ANN)]})
        assert [fact["what"] for fact in json.loads(answer["content"])["facts"]] == [ANN]


def test_a_json_object_without_a_schema_has_the_form_that_mem0_reads() -> None:
    """A list of memories with ids and texts."""
    answer = ask({"response_format": {"type": "json_object"}, "messages": [user(ANN)]})
    assert json.loads(answer["content"]) == {"memory": [{"id": "0", "text": ANN}]}


def test_an_answer_comes_from_the_context() -> None:
    """The sentences that share words with the question."""
    system = f"You help. {ANN} Bo has a cat named Tom."
    answer = ask({"messages": [{"role": "system", "content": system}, user("Which cat does Bo have?")]})
    assert answer["content"] == "Bo has a cat named Tom."


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "save_note"}}])
def test_a_required_call_has_valid_arguments(choice: Any) -> None:
    """The text of a note is what the user said."""
    tools = [{"type": "function", "function": TOOL}]
    call = ask({"messages": [user(ANN)], "tools": tools, "tool_choice": choice})["tool_calls"][0]["function"]
    assert (call["name"], json.loads(call["arguments"])) == ("save_note", {"content": ANN})


def test_anthropics_words_for_a_required_call_are_known() -> None:
    """`any` and a named tool."""
    tools = [{"name": "save_note", "input_schema": TOOL["parameters"]}]
    for choice in ({"type": "any"}, {"type": "tool", "name": "save_note"}):
        with ScriptedServer(RuleModel()) as server:
            body = {"messages": [user(ANN)], "tools": tools, "tool_choice": choice}
            answer = post(f"{server.url}/v1/messages", body)
        assert answer["content"][0]["input"] == {"content": ANN}


def test_a_tool_that_need_not_be_called_is_called_once_in_a_turn_when_named() -> None:
    """Then the model answers; without a name it answers at once."""
    tools = [{"type": "function", "function": TOOL}]
    body = {"messages": [user(ANN)], "tools": tools}
    assert "tool_calls" not in ask(body)
    calling = ask(body, RuleModel(calls=["save_note"]))
    assert calling["tool_calls"][0]["function"]["name"] == "save_note"
    result = {"role": "tool", "tool_call_id": calling["tool_calls"][0]["id"], "content": "saved"}
    body["messages"] = [user(ANN), calling, result]
    assert "tool_calls" not in ask(body, RuleModel(calls=["save_note"]))


def test_a_required_sequence_ends_with_the_tool_that_ends_it() -> None:
    """An agent that must always call a tool searches first and then calls `done`."""
    names = ("done", "recall")
    tools = [{"type": "function", "function": TOOL | {"name": name}} for name in names]
    body = {"messages": [user(ANN)], "tools": tools, "tool_choice": "required"}
    first = ask(body)
    assert first["tool_calls"][0]["function"]["name"] == "recall"
    body["messages"] = [user(ANN), first, {"role": "tool", "tool_call_id": "x", "content": "found"}]
    assert ask(body)["tool_calls"][0]["function"]["name"] == "done"


def test_a_schema_that_cannot_be_filled_is_refused_with_the_reason() -> None:
    """With status 400, not with an invalid document."""
    impossible = {"type": "json_schema", "json_schema": {"schema": {"$ref": "#/$defs/missing"}}}
    with ScriptedServer(RuleModel()) as server:
        with pytest.raises(Exception, match="400") as caught:
            post(f"{server.openai_url}/chat/completions", {"messages": [user(ANN)], "response_format": impossible})
        caught.value.close()  # type: ignore[attr-defined]


@pytest.mark.usefixtures("model_sdks")
def test_openais_client_reads_streamed_calls() -> None:
    """The client assembles the fragments of a call."""
    openai: Any = pytest.importorskip("openai")
    tools = [{"type": "function", "function": TOOL}]
    with (
        ScriptedServer(RuleModel()) as server,
        openai.OpenAI(api_key="k", base_url=server.openai_url) as client,
        client.chat.completions.stream(model="m", messages=[user(ANN)], tools=tools, tool_choice="required") as stream,
    ):
        call = stream.get_final_completion().choices[0].message.tool_calls[0]
    assert json.loads(call.function.arguments) == {"content": ANN}


def test_the_program_answers_by_rules_without_a_script() -> None:
    """With embeddings of the size that it was started with."""
    with program("--dimensions", "8") as url:
        answer = post(f"{url}/v1/chat/completions", {"messages": [user(ANN)]})
        embedding = post(f"{url}/v1/embeddings", {"input": ANN})
    assert answer["choices"][0]["message"]["content"] == ANN
    assert len(embedding["data"][0]["embedding"]) == 8
