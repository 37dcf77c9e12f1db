"""The only room that knows every part: settings become an engine, planes, a dispatcher and its edges."""

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event

from starlette.types import ASGIApp

from loom import __version__, federation, system
from loom.access.caller import Install
from loom.access.sessions import Sessions
from loom.access.tokens import Authenticator
from loom.compose.models import Breakers, opened, reranker, writer
from loom.config import Settings, git_environment, is_loopback
from loom.edges.dashboard import Dashboard, dashboard_routes
from loom.edges.http.app import Http, http_app
from loom.edges.http.hosts import Hosts
from loom.edges.http.lifecycle import Lifecycle
from loom.edges.http.metrics import Metrics
from loom.edges.mcp.endpoint import McpEndpoint
from loom.edges.mcp.server import Tools, mcp_server
from loom.edges.workers import Workers
from loom.jobs.backlog import Backlog
from loom.jobs.handlers import Bench, Handler
from loom.jobs.late import LateQueue
from loom.jobs.worker import Worker
from loom.ledger import embedding
from loom.models.caching import CachingEmbedder
from loom.models.interface import Embedder
from loom.models.writer import Writer
from loom.ops.dispatch import Dispatcher
from loom.ops.ratelimit import PerMinute, RateLimit, SharedPerMinute
from loom.ops.registry import Registry
from loom.ops.spec import Limits, Toolset
from loom.planes import code, conversation, knowledge, memory, profile, tracker
from loom.storage.interface import SYSTEM_ORG, Database, StoreError
from loom.storage.migrate import from_package
from loom.storage.postgres import PostgresSettings, opened_trial
from loom.storage.postgres import opened as opened_postgres
from loom.storage.sqlite import SqliteDatabase, SqliteSettings
from loom.storage.sqlite import backup as sqlite_backup
from loom.system.guard import SpaceGuard
from loom.system.reindexing import Reindex, Reindexed, Show
from loom.system.spaces import Spaces

STORE_FOLDER = "store"
POSTGRES_FOLDER = "postgres"
CODE_FOLDER = "code"
"""Repositories that were fetched."""

LEG_THREADS = 16
MODEL_BUILD_TIMEOUT_S = 300.0
"""How long a language model may take to build one profile, all its calls together."""

MEBIBYTE = 1024 * 1024

PLANES = (memory, profile, knowledge, conversation, tracker, code)

LIBRARY = code.Library(knowledge.keep_text, knowledge.forget_text)
"""A repository's documents are kept with the others of its namespace."""

LEGS = (conversation.LEG, memory.LEG, knowledge.LEG, tracker.LEG, profile.LEG)
"""What search.query asks, what takes longest first: there may be fewer processors than legs."""

PURGES = (
    memory.purge_namespace,
    profile.purge_namespace,
    conversation.purge_namespace,
    knowledge.purge_namespace,
    tracker.purge_namespace,
    code.purge_namespace,
)
"""What namespace.delete has the planes do that keep rows of their own."""

CARGOS = (memory.CARGO, profile.CARGO, conversation.CARGO, knowledge.CARGO, tracker.CARGO, code.CARGO)
"""What store.export and store.import move, beside the namespaces themselves."""

VECTORED = (
    embedding.VECTORED,
    conversation.VECTORED,
    knowledge.VECTORED,
    tracker.VECTORED,
    code.VECTORED,
)
"""What loom reindex makes vectors of; the ledger's are memories and profile sections."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class App:
    """A built server. `start` it before serving `asgi`; `close` it in the end, once.

    Attributes:
        dispatcher: runs operations.
        asgi: every route.
        lifecycle: opens and closes the routes.
        worker: does what was left for later.
        embedder: turns text into vectors.
        database: the store.
        pool: runs the legs of a search.
        works: whether this process does later work, beside late notes, which are its own.
    """

    dispatcher: Dispatcher
    asgi: ASGIApp
    lifecycle: Lifecycle
    worker: Worker
    embedder: Embedder
    database: Database
    pool: ThreadPoolExecutor
    works: bool

    def start(self) -> None:
        """Load the model in the background and begin to do what was left for later."""
        self.embedder.warm()
        self.worker.start(jobs=self.works)

    def work(self, stop: Event) -> None:
        """Do later work alone, whatever the settings say, until `stop` is set."""
        self.embedder.warm()
        self.worker.start()
        stop.wait()

    def settle(self, show: Callable[[int], None] | None) -> int:
        """Do what is due of later work here and now, telling `show` how many jobs are left; None does nothing.

        Returns:
            how many jobs are left: they failed, or are not due yet.
        """
        return self.worker.settle(show)

    def close(self) -> None:
        """Finish what is under way and close the store. One that does not close in time is logged."""
        self.worker.stop()
        self.pool.shutdown(wait=True, cancel_futures=True)
        self.embedder.close()
        if self.dispatcher.reranker is not None:
            self.dispatcher.reranker.close()
        try:
            self.database.close()
        except StoreError as error:
            log.warning("%s", error)


def registry() -> Registry:
    """Every operation, without a store."""
    every = [op for plane in PLANES if plane is not code for op in plane.OPS] + list(code.ops(LIBRARY))
    return system.registry([*every, *federation.ops(LEGS)], PURGES, CARGOS)


def database(settings: Settings) -> Database:
    """The store, in PostgreSQL or in the home folder.

    The system's rows and the install's org are opened, so that trouble shows at once.

    Raises:
        StoreError: the store cannot be used.
    """
    made = _database(settings)
    for org in (SYSTEM_ORG, settings.org):
        with made.transaction(org, write=False):
            pass
    return made


def _database(settings: Settings) -> Database:
    migrations = from_package("loom")
    url = settings.database_url.get_secret_value()
    bounds = PostgresSettings(
        connections_max=settings.database_connections_max,
        idle_timeout_s=settings.database_idle_s,
        replica_url=settings.database_replica_url.get_secret_value() if url else "",
    )
    if url:
        return opened_postgres(url, migrations, bounds)
    if settings.try_postgres:
        return opened_trial(settings.home / POSTGRES_FOLDER, migrations, bounds)
    return SqliteDatabase(
        settings.home / STORE_FOLDER,
        migrations,
        SqliteSettings(synchronous=settings.synchronous, vector_cache_bytes_max=settings.vector_cache_mb * MEBIBYTE),
    )


def backup(settings: Settings, target: Path, show: sqlite_backup.Show) -> dict[str, int]:
    """Copy the embedded store to a folder, while servers use it; each file with its bytes.

    Raises:
        StoreError: it cannot be read, or the folder not be written.
    """
    copied = sqlite_backup.backup(settings.home / STORE_FOLDER, target, show)
    return {one.name: one.byte_count for one in copied}


def restore(settings: Settings, source: Path, show: sqlite_backup.Show) -> dict[str, int]:
    """Make the embedded store of a backup; each file with its bytes.

    Raises:
        StoreError: there is a store already, or the backup is none or damaged.
    """
    copied = sqlite_backup.restore(source, settings.home / STORE_FOLDER, from_package("loom"), show)
    return {one.name: one.byte_count for one in copied}


def guarded(settings: Settings, store: Database, breakers: Breakers, *, embeds: bool) -> SpaceGuard:
    """The embedder that the settings name, once it is known that the store's vectors are of its space.

    Raises:
        StoreError: they are of another, or the embedder cannot be used.
    """
    spaces = Spaces(store, clock_us)
    model = opened(settings, spaces)
    try:
        if embeds:
            spaces.check(model.space, settings.embedder)
    except BaseException:
        model.close()
        raise
    return SpaceGuard(CachingEmbedder(breakers.before(model)), spaces)


def reindex(settings: Settings, show: Show, *, anew: bool, may_switch: bool) -> Reindexed:
    """Make every vector anew with the embedder that the settings name, while servers go on, and switch over.

    Raises:
        StoreError: the store or the embedder cannot be used.
        ReindexFailed: it stopped half way; done again it goes on.
    """
    with closing(database(settings)) as store:
        spaces = Spaces(store, clock_us)
        with closing(opened(settings, spaces, anew=anew)) as model:
            bench = Bench(store, model, clock_us, settings.tombstone_days, settings.audit_days)
            return Reindex(bench, spaces, VECTORED, show, anew=anew, may_switch=may_switch).run()


def build(settings: Settings, *, embeds: bool = True) -> App:
    """A server on the store of `settings.home`; not started.

    Args:
        settings: what it is made of.
        embeds: False for what embeds nothing, and may open a store of another embedding model.

    Raises:
        StoreError: the store or the model's files cannot be used.
    """
    breakers = Breakers()
    language_model, store = writer(settings, breakers), database(settings)
    try:
        model = guarded(settings, store, breakers, embeds=embeds)
    except BaseException:
        store.close()
        raise
    reader = reranker(settings)
    bench = Bench(store, model, clock_us, settings.tombstone_days, settings.audit_days, language_model)
    late = LateQueue(bench, {name: handler for part in (*PLANES, system) for name, handler in part.LATE.items()})
    sweeps = [sweep for part in (*PLANES, system) for sweep in part.SWEEPS]
    slow = memory.SLOW if language_model is None else memory.SLOW | {profile.BUILD}
    worker = Worker(bench, jobs(settings, model, language_model), sweeps, late, slow=slow, fit=model.fits)
    lifecycle, metrics, pool = Lifecycle(), Metrics(), ThreadPoolExecutor(LEG_THREADS, "loom-leg")
    backlog = Backlog(store, clock_us)
    metrics.gauge("jobs_waiting", "Jobs of every org that wait or are being done.", backlog.waiting)
    metrics.gauge("jobs_oldest_seconds", "How long ago the oldest of them was asked for.", backlog.oldest_s)
    rests = "How long it is not asked since it failed several times in a row; 0 while it is."
    metrics.gauge("embedder_rest_seconds", f"The embedder. {rests}", breakers.embedder_rest_s)
    metrics.gauge("writer_rest_seconds", f"The language model. {rests}", lambda: breakers.writer.rest_s)
    opens = "1 from when it is left alone until it answers again; else 0."
    metrics.gauge("embedder_open", f"The embedder. {opens}", breakers.embedder_open)
    metrics.gauge("writer_open", f"The language model. {opens}", lambda: int(breakers.writer.is_open))
    ops = registry()
    dispatcher = Dispatcher(
        registry=ops,
        database=store,
        embedder=model,
        writer=language_model,
        install=install(settings),
        rate_limit=rate_limit(settings, store),
        clock_us=clock_us,
        later=late,
        observe=metrics.observe,
        pool=pool,
        limits=limits(settings),
        wake=store.share_wakes(worker.wake),
        reranker=reader,
    )
    authenticator = Authenticator(
        store,
        clock_us,
        loopback=is_loopback(settings.host),
        note_use=partial(system.note_use, late),
    )
    asgi = _asgi(settings, dispatcher, authenticator, (lifecycle, metrics))
    return App(dispatcher, asgi, lifecycle, worker, model, store, pool, works=settings.later_work == "here")


def jobs(settings: Settings, model: Embedder, language_model: Writer | None) -> dict[str, Handler]:
    """What the worker does, by the kind of job."""
    if language_model is None:
        builds = profile.jobs(profile.RulesBuilder(model))
    else:
        builds = profile.jobs(profile.ModelBuilder(language_model), MODEL_BUILD_TIMEOUT_S)
    yard = code.yard_of(settings.home / CODE_FOLDER, git_environment(), limits(settings))
    return {
        **embedding.JOBS,
        **memory.JOBS,
        **builds,
        **conversation.JOBS,
        **knowledge.JOBS,
        **tracker.JOBS,
        **code.jobs(yard, LIBRARY),
    }


def install(settings: Settings) -> Install:
    """The identity of a tokenless call."""
    planes = {"code": settings.code_org, "tracker": settings.tracker_org}
    return Install(settings.org, settings.namespace, settings.agent, planes)


def rate_limit(settings: Settings, store: Database) -> RateLimit:
    """Counts calls: for all servers of the store where it has several, else in this process."""
    counts = store.shared_counts()
    if counts is None:
        return PerMinute(settings.reads_per_minute, settings.writes_per_minute)
    return SharedPerMinute(counts, settings.reads_per_minute, settings.writes_per_minute, clock_us)


def limits(settings: Settings) -> Limits:
    """The bounds that operations obey."""
    return Limits(
        fanout_namespaces_max=settings.memory_search_fanout_max_namespaces,
        leg_timeout_s=settings.leg_timeout_ms / 1000,
        tombstone_days=settings.tombstone_days,
        git_schemes=settings.code_git_schemes,
        closed_folders=(settings.home.resolve(),),
        code_folders=settings.code_folders,
        git_private_hosts=settings.code_git_private_hosts,
    )


def clock_us() -> int:
    """Now, in microseconds UTC."""
    return time.time_ns() // 1000


def _asgi(
    settings: Settings, dispatcher: Dispatcher, authenticator: Authenticator, shared: tuple[Lifecycle, Metrics]
) -> ASGIApp:
    lifecycle, metrics = shared
    workers, witness = Workers(), system.Witness(dispatcher.later, settings.org, clock_us)
    tools = Tools(dispatcher.registry, dispatcher.call, workers, Toolset(settings.mcp_toolset))
    mcp = McpEndpoint(
        mcp_server(tools, __version__), authenticator.authenticate, workers, lifecycle, settings.body_bytes_max
    )
    dashboard = Dashboard(
        call=dispatcher.call,
        sessions=Sessions(dispatcher.database, authenticator, clock_us, witness),
        workers=workers,
        lifecycle=lifecycle,
        version=__version__,
        namespace=settings.namespace,
        body_length_max=settings.body_bytes_max,
    )
    return http_app(
        Http(
            registry=dispatcher.registry,
            call=dispatcher.call,
            authenticate=authenticator.authenticate,
            version=__version__,
            hosts=Hosts.of((*settings.allowed_hosts, settings.host), settings.allowed_origins),
            metrics=metrics,
            checks={"store": partial(_store_fault, dispatcher.database, settings.org)},
            mcp=mcp,
            workers=workers,
            lifecycle=lifecycle,
            body_length_max=settings.body_bytes_max,
            pages=dashboard_routes(dashboard),
            missing=dashboard.missing,
        )
    )


def _store_fault(store: Database, org: str) -> str | None:
    try:
        with store.transaction(org, write=False) as tx:
            tx.rows("SELECT name FROM namespace WHERE org = :org LIMIT 1")
    except StoreError as error:
        return str(error)
    return None
