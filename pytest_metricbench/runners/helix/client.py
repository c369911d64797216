"""The jobs API of a NeMo Helix server over HTTP: its routes, its refusals in words, and what is tried again."""

import email.utils
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, Final
from urllib.parse import quote

from pytest_metricbench.contracts import Json
from pytest_metricbench.process_groups import pause

if TYPE_CHECKING:
    import httpx

DOWNLOAD_LIMIT: Final = 256 << 20
"""Bytes of a job's result that are fetched."""
LONGEST_PAUSE: Final = 30.0
"""Seconds between two tries, unless the server asks for more."""
LONGEST_ASKED: Final = 300.0
"""Seconds that a server may ask to wait."""
ANSWER_TIME: Final = 60.0
"""Seconds that a server may take for an answer."""
_ANSWER_LIMIT: Final = 2000
"""Characters of a server's own words in a message."""


class HelixError(Exception):
    """A request that the server does not fulfil: what kind of trouble it is, and a message for the report."""

    def __init__(self, kind: str, message: str) -> None:
        """Keep the kind for the outcome's error type."""
        super().__init__(message)
        self.kind = kind


class HelixClient:
    """The routes of one workspace. Nothing is connected before the first request.

    Transport errors, 429 and 5xx are tried again, after a pause that doubles up to :data:`LONGEST_PAUSE` seconds or
    after what ``Retry-After`` asks for. When all tries of a request were in vain, the next requests are tried once
    only, until one gets through: the server is down, and each attempt would find that out again.
    """

    def __init__(
        self,
        base_url: str,
        workspace: str,
        *,
        token_env: str | None = None,
        retries: int = 8,
        sleep: Callable[[float], None] = pause,
    ) -> None:
        """Keep where the server is.

        Args:
            base_url: where its ``/apis`` begin.
            workspace: the workspace of all jobs.
            token_env: the variable that holds the token; None where the server wants none.
            retries: how often a request is tried again.
            sleep: waits some seconds.
        """
        self._base = base_url.rstrip("/")
        self._workspace = workspace
        self._token_env = token_env
        self._retries = retries
        self._sleep = sleep
        self._is_down = False

    # ------------------------------------------------------------ routes

    def profiles(self) -> list[dict[str, Json]]:
        """The server's execution profiles: mappings with ``provider``, ``profile`` and ``backend``."""
        answer = self._json(self.send("GET", "/apis/jobs/v2/execution-profiles"))
        return [entry for entry in answer if isinstance(entry, dict)] if isinstance(answer, list) else []

    def create(self, job: Mapping[str, Json], *, patient: bool = True) -> str | None:
        """Submit a job; None when the server took it, else what it says: there is something of its name, mostly.

        Raises:
            HelixError: the server refuses it.
        """
        answer = self.send("POST", self._jobs(), json=job, patient=patient, known=(409,))
        return self._refusal(answer).args[0] if answer.status_code == 409 else None

    def status(self, name: str, *, patient: bool = True) -> dict[str, Json] | None:
        """The status of a job: a mapping with ``status``, ``status_details``, ``error_details``; None without one."""
        answer = self.send("GET", self._jobs(name, "status"), patient=patient, known=(404,))
        return None if answer.status_code == 404 else self._mapping(answer)

    def results(self, name: str) -> dict[str, str] | None:
        """The results of a job: name -> where the server keeps it; None without a job."""
        answer = self.send("GET", self._jobs(name, "results"), known=(404,))
        if answer.status_code == 404:
            return None
        listed = self._mapping(answer).get("data")
        entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
        return {str(entry.get("name")): str(entry.get("artifact_url", "")) for entry in entries}

    def register_result(self, name: str, result: str, artifact_url: str) -> bool:
        """Register a result; False when the job has one of its name."""
        body = {"artifact_url": artifact_url, "artifact_storage_type": "fileset"}
        return self.send("POST", self._jobs(name, "results", result), json=body, known=(409,)).status_code != 409

    def download(self, name: str, result: str, file: IO[bytes]) -> bool:
        """Write the content of a result to a file; False when there is none.

        Raises:
            HelixError: it has more than :data:`DOWNLOAD_LIMIT` bytes, or cannot be fetched.
        """

        def read(answer: "httpx.Response") -> None:
            file.seek(0)
            file.truncate()
            for chunk in answer.iter_bytes():
                file.write(chunk)
                if file.tell() > DOWNLOAD_LIMIT:
                    message = f"the result of {name} has more than {DOWNLOAD_LIMIT >> 20} MiB, which is the limit"
                    raise HelixError("ResultTooLarge", message)

        answer = self.send("GET", self._jobs(name, "results", result, "download"), known=(404,), read=read)
        return answer.status_code != 404

    def log_tail(self, name: str, lines: int = 20) -> str:
        """The end of a job's log; empty where the server has none to give."""
        try:
            answer = self.send("GET", f"{self._jobs(name, 'logs')}?tail={lines}", patient=False)
            listed = self._mapping(answer).get("data")
        except HelixError:
            return ""
        messages = [str(entry.get("message", "")) for entry in listed or () if isinstance(entry, dict)]
        return "\n".join(messages)[-_ANSWER_LIMIT:]

    def cancel(self, name: str) -> None:
        """Ask for a job to be cancelled; what is not there, or has ended, needs none."""
        self.send("POST", self._jobs(name, "cancel"), patient=False, timeout=10, known=(404, 409))

    def delete(self, name: str) -> None:
        """Delete a job that has ended, and what the server keeps of it."""
        self.send("DELETE", self._jobs(name), patient=False, known=(404, 409))

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        opened = self.__dict__.pop("_http", None)
        if opened is not None:
            opened.close()

    # ------------------------------------------------------------ requests

    def send(
        self,
        method: str,
        path: str,
        *,
        json: Json = None,
        patient: bool = True,
        timeout: float | None = None,
        known: tuple[int, ...] = (),
        read: "Callable[[httpx.Response], None] | None" = None,
    ) -> "httpx.Response":
        """Send a request and give the answer, once the server gives one.

        Args:
            method: of HTTP.
            path: from the server's address on, with its query.
            json: the body.
            patient: try again where that may help.
            timeout: seconds that the server may take for an answer; None: :data:`ANSWER_TIME`.
            known: statuses beside 2xx that the caller understands.
            read: is handed the answer while its body is still to come, again for each try.

        Raises:
            HelixError: it is out of reach, or refuses.
        """
        import httpx

        headers, url = self._identity(), f"{self._base}{path}"
        limit = ANSWER_TIME if timeout is None else timeout
        tries = self._retries if patient and not self._is_down else 0
        for number in range(tries + 1):
            asked = None
            try:
                with self._http.stream(method, url, json=json, headers=headers, timeout=limit) as answer:
                    if answer.status_code != 429 and answer.status_code < 500:
                        self._is_down = False
                        return self._taken(answer, known, read)
                    problem, asked = self._said(answer), _retry_after(answer.headers)
            except (httpx.TransportError, httpx.DecodingError) as error:  # what cannot be unpacked came damaged
                problem = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            except (httpx.InvalidURL, UnicodeError) as error:
                raise HelixError("HelixUnreachable", f"{url} is no address: {error}; set base_url right") from None
            if number < tries:
                self._sleep(min(LONGEST_PAUSE, 0.5 * 2**number) if asked is None else asked)
        self._is_down = self._is_down or patient
        times = f"; tried {tries + 1} times" if tries else ""
        raise HelixError("HelixUnreachable", self._scrub(f"{method} {url}: {problem}{times}"))

    def _taken(
        self, answer: "httpx.Response", known: tuple[int, ...], read: "Callable[[httpx.Response], None] | None"
    ) -> "httpx.Response":
        """The answer with its body read, once it is one that the caller understands."""
        if not answer.is_success and answer.status_code not in known:
            raise self._refusal(answer)
        if read is not None and answer.is_success:
            read(answer)
        else:
            answer.read()
        return answer

    @cached_property
    def _http(self) -> "httpx.Client":
        import httpx

        try:
            return httpx.Client()
        except (httpx.InvalidURL, ValueError, ImportError, OSError) as error:  # HTTP_PROXY, SSL_CERT_FILE and their kin
            message = f"what the environment says of proxies or certificates cannot be used: {error}"
            raise HelixError("HelixUnreachable", message) from None

    def _identity(self) -> dict[str, str]:
        token = self._token()
        return {} if token is None else {"Authorization": f"Bearer {token}"}

    def _token(self) -> str | None:
        """The token, from the environment and nowhere else.

        Raises:
            HelixError: the variable is not set, or holds what cannot be a token.
        """
        if self._token_env is None:
            return None
        token = os.environ.get(self._token_env, "").strip()
        if not token:
            message = f"token_env names {self._token_env}, and it is not set in the environment"
            raise HelixError("MissingVariableError", message)
        if not re.fullmatch(r"[\x21-\x7e]+", token):
            message = f"the variable {self._token_env} has characters that no token has"
            raise HelixError("TokenRefused", message)
        return token

    def _refusal(self, answer: "httpx.Response") -> HelixError:
        said = f"{answer.request.method} {answer.request.url}: {self._scrub(self._said(answer))}"
        if answer.status_code in (401, 403):
            if self._token_env is None:
                means = "it wants a token: name the variable that holds one with token_env"
            else:
                means = f"it refuses the token in the variable {self._token_env}"
            return HelixError("TokenRefused", f"{said}; {means}")
        if 300 <= answer.status_code < 400:
            return HelixError("UnexpectedAnswer", f"{said}; set base_url to where the server is")
        return HelixError("HelixRefused", said)

    def _said(self, answer: "httpx.Response") -> str:
        """The status and what the server says about it."""
        if answer.is_redirect:
            return f"HTTP {answer.status_code}, elsewhere: {answer.headers.get('location', '')[:200]}"
        head = b""
        for chunk in answer.iter_bytes():
            head += chunk
            if len(head) > 4 * _ANSWER_LIMIT:
                break
        text = head.decode("utf-8", "replace").strip()
        with suppress(ValueError, TypeError, KeyError, RecursionError):
            detail = json.loads(text)["detail"]
            text = detail if isinstance(detail, str) else json.dumps(detail)
        text = " ".join(text.split())[:_ANSWER_LIMIT]
        return f"HTTP {answer.status_code}{f': {text}' if text else ''}"

    def _scrub(self, text: str) -> str:
        """A message without the token, should a server repeat it."""
        token = os.environ.get(self._token_env, "").strip() if self._token_env else ""
        return text.replace(token, "***") if token else text

    def _mapping(self, answer: "httpx.Response") -> dict[str, Json]:
        value = self._json(answer)
        return value if isinstance(value, dict) else self._no_api(answer)

    def _json(self, answer: "httpx.Response") -> Json:
        try:
            return json.loads(answer.content)
        except (ValueError, RecursionError):
            return self._no_api(answer)

    def _no_api(self, answer: "httpx.Response") -> Any:
        kind = answer.headers.get("content-type", "nothing that it names")
        message = f"{answer.request.method} {answer.request.url} answers with {kind[:100]}, not as a Helix server does"
        raise HelixError("UnexpectedAnswer", f"{message}; is base_url right?")

    def _jobs(self, *parts: str) -> str:
        path = f"/apis/jobs/v2/workspaces/{quote(self._workspace, safe='')}/jobs"
        return "/".join((path, *(quote(part, safe="") for part in parts)))


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait, by RFC 9110, section 10.2.3: a number of them, or a date."""
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return min(max(seconds, 0.0), LONGEST_ASKED) if seconds == seconds else None
