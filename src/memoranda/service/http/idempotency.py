"""Requests with an Idempotency-Key: the same request gets the first answer again, another one with the key is refused.

A killed service may have done the work without storing the answer. So the handlers of such routes derive ids from the
token of the request: repeated, the work finds what it did before.
"""

import re
from collections.abc import Callable
from hashlib import sha256

from memoranda.home.access.request_log import Answers, StoredAnswer
from memoranda.service.http.json_text import write_json
from memoranda.service.http.problems import Problem
from memoranda.service.http.route import Answer, Call

_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_REPLAYED = {"Idempotent-Replayed": "true"}


def answer_once(answers: Answers, call: Call, key: str, work: Callable[[], Answer], target: str) -> Answer:
    """Do the work of a request with this Idempotency-Key, unless its answer is stored. `target` is method and path."""
    if not _KEY.fullmatch(key):
        raise Problem(400, "invalid", "Idempotency-Key must have 1 to 255 visible ASCII characters.")
    owner = write_json([call.caller.key_id, call.user])
    token = _digest(owner, target.encode(), key.encode())
    fingerprint = _digest(write_json(call.query), write_json(call.body))
    stored = answers.find(token)
    if stored is None:
        # The fingerprint is a part of it: two different requests at the same time never share an id.
        call.token = _digest(token.encode(), fingerprint.encode())
        answer = work()
        if answer.status >= 500:
            return answer
        if answers.store(token, StoredAnswer(fingerprint, answer.status, write_json(answer.body).decode())):
            return answer
        stored = answers.find(token)
        if stored is None or stored.fingerprint == fingerprint:
            return answer
    if stored.fingerprint != fingerprint:
        raise Problem(422, "key_reused", "This Idempotency-Key was used for another request. Use a new one.")
    return Answer(stored.body.encode(), stored.status, _REPLAYED)


def _digest(*parts: bytes) -> str:
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()
