"""Prometheus, and whatever speaks its query API: counts and rates by PromQL, with a past.

How old a value can be: an instant query looks back up to 5 minutes, but a series ends at once when its target cannot be
scraped or no longer shows it (Prometheus writes a staleness marker). So an absent series is absent here within one
scrape interval; only series that are pushed with their own timestamps can look fresh for those 5 minutes.
"""

import asyncio
import ssl
from base64 import b64encode
from pathlib import Path

import httpx

from adapter.config import PrometheusSource, Tls
from adapter.errors import SourceError
from adapter.sources import Row
from adapter.sources.prometheus_answers import Gathered, Series, UnansweredError, decode
from adapter.sources.prometheus_plan import Query, check, queries

__all__ = ["PrometheusReader", "Query", "check", "queries"]

MOST_POINTS = 11_000  # a series of one range query; Prometheus refuses more
MOST_CONNECTIONS = 16  # Prometheus runs 20 queries at once and lets the others wait

_Span = tuple[int, int]


class PrometheusReader:
    """Asks one Prometheus all queries of a tick at once, within one deadline.

    A query that fails costs its own signals, as FAULT rows. transport: for tests, instead of the network.
    """

    def __init__(
        self,
        name: str,
        settings: PrometheusSource,
        plan: tuple[Query, ...],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._name = name
        self._settings = settings
        self._plan = plan
        self._transport = transport
        self._runner = asyncio.Runner()
        self._client: httpx.AsyncClient | None = None

    def samples(self, start_s: int, end_s: int, step_s: int) -> list[Row]:
        """The rows of the ticks start_s, start_s + step_s, ... end_s: an instant query for one, a range for several.

        Raises SourceError when no query was answered.
        """
        if not self._plan:
            return []
        asked = [(query, span) for query in self._plan for span in _spans(start_s, end_s, step_s)]
        outcomes = self._runner.run(self._ask_all(asked, step_s))
        lost = [outcome for outcome in outcomes if isinstance(outcome, UnansweredError)]
        if len(lost) == len(asked):
            raise SourceError(self._name, f"{lost[0]} (all {len(lost)} queries)" if len(lost) > 1 else str(lost[0]))
        gathered = Gathered(end_s)
        for (query, _), outcome in zip(asked, outcomes, strict=True):
            if isinstance(outcome, UnansweredError):
                gathered.lost(query, str(outcome))
            else:
                gathered.add(query, outcome)
        gathered.missed(self._plan)
        return gathered.rows()

    def close(self) -> None:
        """Release connections."""
        if self._client is not None:
            self._runner.run(self._client.aclose())
            self._client = None
        self._runner.close()

    async def _ask_all(self, asked: list[tuple[Query, _Span]], step_s: int) -> list[list[Series] | UnansweredError]:
        client = self._client = self._client or self._opened()
        client.headers.update(self._credentials())
        tasks = [asyncio.create_task(self._ask(client, *self._form(query, span, step_s))) for query, span in asked]
        _, late = await asyncio.wait(tasks, timeout=self._settings.deadline_s)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        too_late = UnansweredError(f"no answer within {self._settings.deadline_s:g} s")
        return [too_late if task in late else task.result() for task in tasks]

    async def _ask(self, client: httpx.AsyncClient, kind: str, form: dict[str, str]) -> list[Series] | UnansweredError:
        try:
            answer = await client.post(f"{self._settings.url.rstrip('/')}/api/v1/{kind}", data=form)
            if answer.is_redirect:
                target = answer.headers["location"]
                raise UnansweredError(f"redirected to {target}, which is not followed; set url to where the API is")
            return decode(answer.status_code, answer.headers.get("content-type", ""), answer.content)
        except UnansweredError as lost:
            return lost
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError) as error:  # an alert after the handshake comes bare
            return UnansweredError(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)

    def _form(self, query: Query, span: _Span, step_s: int) -> tuple[str, dict[str, str]]:
        # The server gives up by itself, too, so that queries nobody waits for any more do not pile up.
        form = {"query": query.text, "timeout": f"{self._settings.deadline_s:g}s"}
        start_s, end_s = span
        if start_s == end_s:
            return "query", {**form, "time": str(end_s)}
        return "query_range", {**form, "start": str(start_s), "end": str(end_s), "step": str(step_s)}

    def _opened(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            verify=self._trust(),
            transport=self._transport,
            timeout=self._settings.deadline_s,
            limits=httpx.Limits(max_connections=MOST_CONNECTIONS),
            params=self._settings.parameters,
            trust_env=False,  # neither a proxy nor ~/.netrc of the machine decides who sees the credentials
        )

    def _trust(self) -> ssl.SSLContext:
        tls: Tls = self._settings.tls
        if not self._settings.url.startswith("https:"):
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # not used, and spares loading the system's CAs
        try:
            context = ssl.create_default_context(cafile=tls.ca_file)
            if tls.cert_file:
                context.load_cert_chain(tls.cert_file, tls.key_file)
        except OSError as error:
            files = ", ".join(file for file in (tls.ca_file, tls.cert_file, tls.key_file) if file)
            raise SourceError(self._name, f"tls: cannot load {files}: {error}") from error
        return context

    def _credentials(self) -> dict[str, str]:
        """The headers of one call. Files are read anew each time: tokens of service accounts change every hour."""
        headers = dict(self._settings.headers)
        if self._settings.bearer_token_file:
            token = self._secret(self._settings.bearer_token_file)
            if not (token.isascii() and token.isprintable()):
                raise SourceError(
                    self._name, f"{self._settings.bearer_token_file} holds no token, but other characters"
                )
            headers["Authorization"] = f"Bearer {token}"
        if self._settings.basic:
            pair = f"{self._settings.basic.username}:{self._secret(self._settings.basic.password_file)}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        return headers

    def _secret(self, file: str) -> str:
        try:
            secret = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SourceError(self._name, f"cannot read {file}: {error}") from error
        if not secret:
            raise SourceError(self._name, f"{file} is empty")
        return secret


def _spans(start_s: int, end_s: int, step_s: int) -> list[_Span]:
    """The ticks in pieces that one range query may cover, as (first, last)."""
    length = (MOST_POINTS - 1) * step_s
    return [(first, min(first + length, end_s)) for first in range(start_s, end_s + 1, length + step_s)]
