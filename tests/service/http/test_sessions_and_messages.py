"""Sessions and messages over HTTP: created, listed, appended exactly once, read page by page, deleted."""

import httpx
import pytest


def _create(client: httpx.Client, session_id: str, **fields: object) -> None:
    assert client.post("/v1/sessions", json={"id": session_id, **fields}).status_code == 201


def _append(client: httpx.Client, session_id: str, *texts: str, **headers: str) -> httpx.Response:
    messages = [{"role": "user", "content": text} for text in texts]
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(f"/v1/sessions/{session_id}/messages", json={"messages": messages}, headers=names)


def test_a_session_is_created_read_ended_and_deleted(client: httpx.Client) -> None:
    """Each step is visible in the next answer."""
    _create(client, "life", title="A life", source="telegram")
    found = client.get("/v1/sessions/life").json()
    assert (found["title"], found["source"], found["ended_at"]) == ("A life", "telegram", None)
    assert client.post("/v1/sessions/life/end", json={"reason": "done"}).json()["end_reason"] == "done"
    assert client.delete("/v1/sessions/life").status_code == 204
    gone = client.get("/v1/sessions/life")
    assert (gone.status_code, gone.json()["reason"]) == (404, "not_found")
    assert gone.headers["content-type"] == "application/problem+json"


def test_creating_a_session_again_says_that_it_existed(client: httpx.Client) -> None:
    """And fills only its empty fields."""
    _create(client, "twice", title="First")
    again = client.post("/v1/sessions", json={"id": "twice", "title": "Second", "model": "m"})
    assert (again.status_code, again.json()) == (200, {"id": "twice", "created": False})
    found = client.get("/v1/sessions/twice").json()
    assert (found["title"], found["model"]) == ("First", "m")


def test_an_id_with_a_slash_is_one_part_of_the_path(client: httpx.Client) -> None:
    """Encoded, as every part of a path."""
    _create(client, "a/b c%2F")
    assert client.get("/v1/sessions/a%2Fb%20c%252F").json()["id"] == "a/b c%2F"
    assert client.get("/v1/sessions/a/b").status_code == 404


def test_pages_of_sessions_have_every_session_once(client: httpx.Client) -> None:
    """Also those that started at the same time, and the newest first."""
    for number in range(7):
        _create(client, f"page-{number}", started_at=1_000.0 + number // 5)
    seen, cursor = list[str](), ""
    while True:
        page = client.get("/v1/sessions", params={"limit": 2} | ({"cursor": cursor} if cursor else {})).json()
        seen += [session["id"] for session in page["sessions"]]
        if "next_cursor" not in page:
            break
        cursor = page["next_cursor"]
    assert seen == ["page-6", "page-5", "page-4", "page-3", "page-2", "page-1", "page-0"]


def test_appended_messages_are_read_back_page_by_page(client: httpx.Client) -> None:
    """The cursor of the last page finds what is appended later."""
    _create(client, "talk")
    ids = _append(client, "talk", "one", "two", "three").json()["ids"]
    first = client.get("/v1/sessions/talk/messages", params={"limit": 2}).json()
    assert ([message["content"] for message in first["messages"]], first["more"]) == (["one", "two"], True)
    second = client.get("/v1/sessions/talk/messages", params={"cursor": first["cursor"]}).json()
    assert ([message["id"] for message in second["messages"]], second["more"]) == ([ids[2]], False)
    _append(client, "talk", "four")
    later = client.get("/v1/sessions/talk/messages", params={"cursor": second["cursor"]}).json()
    assert [message["content"] for message in later["messages"]] == ["four"]
    assert client.get(f"/v1/sessions/talk/messages/{ids[0]}").json()["content"] == "one"


def test_a_repeated_append_adds_nothing(client: httpx.Client) -> None:
    """With an external id, and with an Idempotency-Key; the key refuses another body."""
    _create(client, "retry")
    message = {"messages": [{"role": "user", "content": "hello", "external_id": "x1"}]}
    ids = [client.post("/v1/sessions/retry/messages", json=message).json()["ids"] for _ in range(2)]
    assert ids[0] == ids[1]
    first, second = (_append(client, "retry", "again", idempotency_key="k") for _ in range(2))
    assert first.json() == second.json()
    assert second.headers["idempotent-replayed"] == "true"
    other = _append(client, "retry", "different", idempotency_key="k")
    assert (other.status_code, other.json()["reason"]) == (422, "key_reused")
    assert client.get("/v1/sessions/retry").json()["message_count"] == 2


def test_a_key_makes_a_new_session_once(client: httpx.Client) -> None:
    """A session without an id, created twice with the same Idempotency-Key, is one session."""
    created = [client.post("/v1/sessions", json={}, headers={"Idempotency-Key": "new"}) for _ in range(2)]
    assert created[0].json() == created[1].json()
    assert created[1].headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize("name", ["copy_of", "id", "is_summary", "memoranda_turn", "session_id"])
def test_a_message_cannot_refer_to_rows_of_the_record(client: httpx.Client, name: str) -> None:
    """A copy could otherwise show the message of another user."""
    _create(client, f"copy-{name}")
    answer = client.post(
        f"/v1/sessions/copy-{name}/messages", json={"messages": [{"role": "user", "content": "", name: 1}]}
    )
    assert answer.status_code == 422


def test_any_text_comes_back_as_it_was_sent(client: httpx.Client) -> None:
    """NUL, halves of surrogate pairs, other scripts, structured content and unknown fields."""
    _create(client, "texts")
    raw = rb'{"messages":[{"role":"user","content":"a\u0000b \ud800 \u6570\u636e","mood":{"of":["day"]}}]}'
    sent = client.post("/v1/sessions/texts/messages", content=raw, headers={"Content-Type": "application/json"})
    assert sent.status_code == 201
    message = client.get("/v1/sessions/texts/messages").json()["messages"][0]
    assert (message["content"], message["mood"]) == ("a\0b \ud800 数据", {"of": ["day"]})


def test_an_append_is_all_or_nothing(client: httpx.Client) -> None:
    """One message that cannot be stored refuses all of them."""
    _create(client, "whole")
    messages = [{"role": "user", "content": "one"}, {"role": "nobody", "content": "two"}]
    assert client.post("/v1/sessions/whole/messages", json={"messages": messages}).status_code == 422
    assert client.get("/v1/sessions/whole/messages").json()["messages"] == []


def test_recalled_memory_that_a_model_repeats_is_not_recorded(client: httpx.Client) -> None:
    """As in a turn of the library."""
    _create(client, "fenced")
    from memoranda.safety.fence import build_memory_context_block

    content = f"{build_memory_context_block('the secret plan')}\n\nHello."
    client.post("/v1/sessions/fenced/messages", json={"messages": [{"role": "assistant", "content": content}]})
    assert "secret plan" not in client.get("/v1/sessions/fenced/messages").text
