"""Read counts and rates, present and past, by PromQL from any server with Prometheus' query API.

A query looks back up to 5 minutes, but a series ends as soon as its target cannot be scraped or no longer exposes it
(Prometheus writes a staleness marker). So a series that ends is absent here within one scrape interval. Series without
such a marker, which have timestamps of their own or are pushed, look fresh for 5 minutes or lookback_s.
"""

import asyncio
import os
import ssl
import time
from base64 import b64encode
from email.utils import parsedate_to_datetime

import httpx
import pyarrow as pa

from adapter.config import PrometheusSource
from adapter.errors import SourceError
from adapter.file_stamps import FileStamp
from adapter.http_body import ACCEPTED, BodyError, LargeBodyError, read_body_async
from adapter.sources.prometheus_answers import QueryError, Series, decode
from adapter.sources.prometheus_plan import Query
from adapter.sources.prometheus_results import ResultCollector
from adapter.sources.source_files import read_text
from adapter.sources.tls import KEEPALIVE_S, tls_context, tls_stamps

MOST_POINTS = 11_000  # of a series in one range query; Prometheus refuses more
MOST_VALUES = {"query": 100_000, "query_range": 2_000_000}  # of one answer; each takes some 250 bytes of memory
MOST_CLOCK_OFFSET_S = 300.0  # an instant query looks back as far
MOST_CONNECTIONS = 16  # Prometheus runs 20 queries at a time and queues the others

_Span = tuple[int, int]


class PrometheusReader:
    """Sends all queries of a tick to one Prometheus at the same time, within one deadline.

    A query that fails affects only its own signals, which become FAULT rows.
    """

    def __init__(
        self,
        name: str,
        settings: PrometheusSource,
        plan: tuple[Query, ...],
        transport: httpx.AsyncBaseTransport | None = None,  # for tests
    ) -> None:
        self._name = name
        self._settings = settings
        self._plan = plan
        self._transport = transport
        self._runner = asyncio.Runner()
        # Not the limit of httpx's pool: a request that is cancelled while it waits there can leave a connection that
        # is neither used nor removed (https://github.com/encode/httpcore/issues/1093), until the pool is full of them.
        self._slots = asyncio.Semaphore(MOST_CONNECTIONS)
        self._client: httpx.AsyncClient | None = None
        self._tls_stamps: tuple[FileStamp, ...] = ()

    def samples(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
        """The samples of the ticks: one tick needs instant queries, several need range queries.

        Raises SourceError if every query fails.
        """
        requests = [(query, span) for query in self._plan for span in _spans(start_s, end_s, step_s)]
        results = self._runner.run(self._send_all(requests, step_s)) if requests else []
        errors = [result for result in results if isinstance(result, QueryError)]
        if requests and len(errors) == len(requests):
            count = f" (all {len(errors)} queries)" if len(errors) > 1 else ""
            raise SourceError(self._name, f"{errors[0]}{count}")
        collector = ResultCollector(end_s)
        for (query, _), result in zip(requests, results, strict=True):
            collector.discover(query, [] if isinstance(result, QueryError) else result)
        for (query, _), result in zip(requests, results, strict=True):
            if isinstance(result, QueryError):
                collector.fail(query, str(result))
            else:
                collector.add(query, result)
        collector.report_missing(self._plan)
        return collector.table()

    def close(self) -> None:
        """Release connections."""
        if self._client is not None:
            self._runner.run(self._client.aclose())
            self._client = None
        self._runner.close()

    async def _send_all(self, requests: list[tuple[Query, _Span]], step_s: int) -> list[list[Series] | QueryError]:
        client = await self._current_client()
        client.headers.update(self._credentials())
        tasks = [asyncio.create_task(self._send(client, *self._form(query, span, step_s))) for query, span in requests]
        _, late = await asyncio.wait(tasks, timeout=self._settings.deadline_s)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        timeout = self._no_answer(httpx.ReadTimeout(""))
        return [timeout if task in late else task.result() for task in tasks]

    async def _send(self, client: httpx.AsyncClient, kind: str, form: dict[str, str]) -> list[Series] | QueryError:
        url = f"{self._settings.url.rstrip('/')}/api/v1/{kind}"
        try:
            async with self._slots, client.stream("POST", url, data=form) as answer:
                _check_clock(answer.headers.get("date", ""))
                if answer.is_redirect:
                    target = answer.headers.get("location")
                    what = f"redirected to {target}, which is not followed" if target else f"HTTP {answer.status_code}"
                    raise QueryError(f"{what}; set url to the address of the API")
                body = (await read_body_async(answer)).getvalue()
            return decode(answer.status_code, answer.headers.get("content-type", ""), body, MOST_VALUES[kind])
        except QueryError as error:
            return error
        except LargeBodyError as error:
            return QueryError(f"{error}; narrow the query")
        except BodyError as error:
            return QueryError(str(error))
        # httpx does not wrap a TLS alert that arrives after the handshake.
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError) as error:
            return self._no_answer(error)

    def _no_answer(self, error: Exception) -> QueryError:
        if isinstance(error, httpx.TimeoutException):
            return QueryError(f"no answer from {self._settings.url} within {self._settings.deadline_s:g} s")
        return QueryError(f"no answer from {self._settings.url}: {_cause(error)}")

    def _form(self, query: Query, span: _Span, step_s: int) -> tuple[str, dict[str, str]]:
        # The server applies the timeout too, so that abandoned queries do not pile up there. It refuses "2.5s".
        form = {"query": query.text, "timeout": f"{self._settings.deadline_s:g}"}
        if self._settings.lookback_s is not None:
            form["lookback_delta"] = f"{self._settings.lookback_s:g}"  # a number: Prometheus refuses 7.5s
        start_s, end_s = span
        if start_s == end_s:
            return "query", {**form, "time": str(end_s)}
        return "query_range", {**form, "start": str(start_s), "end": str(end_s), "step": str(step_s)}

    async def _current_client(self) -> httpx.AsyncClient:
        """The client, opened anew after a TLS file has changed."""
        stamps = tls_stamps(self._settings.tls)
        if self._client is not None and stamps != self._tls_stamps:
            await self._client.aclose()
            self._client = None
        if self._client is None:
            self._client, self._tls_stamps = self._open(), stamps
        return self._client

    def _open(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            verify=tls_context(self._name, self._settings.url, self._settings.tls),
            transport=self._transport,
            timeout=self._settings.deadline_s,
            limits=httpx.Limits(max_connections=None, keepalive_expiry=KEEPALIVE_S),
            params=self._settings.parameters,
            headers=ACCEPTED,
            trust_env=False,  # no proxy of the environment or ~/.netrc may redirect the credentials
        )

    def _credentials(self) -> dict[str, str]:
        """The headers of one call. The files are read each time, because service account tokens rotate every hour."""
        headers = dict(self._settings.headers)
        if self._settings.bearer_token_file:
            token = self._secret("bearer_token_file", self._settings.bearer_token_file)
            if not (token.isascii() and token.isprintable()):
                cause = f"expected one token, got {self._settings.bearer_token_file} with characters that no token has"
                raise SourceError(self._name, f"bearer_token_file: {cause}")
            headers["Authorization"] = f"Bearer {token}"
        if self._settings.basic:
            password = self._secret("basic.password_file", self._settings.basic.password_file)
            pair = f"{self._settings.basic.username}:{password}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        return headers

    def _secret(self, setting: str, file: str) -> str:
        secret = read_text(self._name, setting, file).strip()
        if not secret:
            raise SourceError(self._name, f"{setting}: expected a secret, got the empty file {file}; write it there")
        return secret


def _check_clock(date: str) -> None:
    """Raises QueryError if the server's clock is so far off that it answers with numbers of another time."""
    try:
        ahead_s = parsedate_to_datetime(date).timestamp() - time.time()
    except (ValueError, OverflowError):  # a proxy may remove the header
        return
    if abs(ahead_s) > MOST_CLOCK_OFFSET_S:
        order = "ahead of" if ahead_s > 0 else "behind"
        raise QueryError(f"the server's clock is {abs(ahead_s):.0f} s {order} this one; synchronize the clocks")


def _cause(error: BaseException) -> str:
    """An error as text; a refused connection in the system's words, because httpx says that all attempts failed."""
    first: BaseException | None = error
    while first is not None:
        if isinstance(first, ConnectionError) and first.errno:
            return os.strerror(first.errno)
        first = first.exceptions[0] if isinstance(first, BaseExceptionGroup) else first.__cause__ or first.__context__
    return str(error) or type(error).__name__


def _spans(start_s: int, end_s: int, step_s: int) -> list[_Span]:
    """The ticks in spans (first, last) that one range query can cover."""
    length = (MOST_POINTS - 1) * step_s
    return [(first, min(first + length, end_s)) for first in range(start_s, end_s + 1, length + step_s)]
