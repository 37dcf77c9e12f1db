# Generated from the registry by `make docs`. Do not edit.
"""Every plane of the client, and what may be sent twice."""

from loom.edges.client.core import Repeats
from loom.edges.client.planes.audit import AsyncAudit, Audit
from loom.edges.client.planes.code import AsyncCode, Code
from loom.edges.client.planes.context import AsyncContext, Context
from loom.edges.client.planes.conversation import AsyncConversation, Conversation
from loom.edges.client.planes.dashboard import AsyncDashboard, Dashboard
from loom.edges.client.planes.knowledge import AsyncKnowledge, Knowledge
from loom.edges.client.planes.memory import AsyncMemory, Memory
from loom.edges.client.planes.namespace import AsyncNamespace, Namespace
from loom.edges.client.planes.ops import AsyncOps, Ops
from loom.edges.client.planes.profile import AsyncProfile, Profile
from loom.edges.client.planes.search import AsyncSearch, Search
from loom.edges.client.planes.store import AsyncStore, Store
from loom.edges.client.planes.token import AsyncToken, Token
from loom.edges.client.planes.tracker import AsyncTracker, Tracker
from loom.edges.client.running import AsyncRun, Run

REPEATS = Repeats(
    reads=frozenset(
        {
            "audit.list",
            "code.callers",
            "code.index_status",
            "code.read",
            "code.search",
            "code.symbol",
            "context.activate",
            "context.pack",
            "conversation.get",
            "conversation.list",
            "conversation.search",
            "knowledge.get",
            "knowledge.list",
            "knowledge.search",
            "memory.get",
            "memory.history",
            "memory.list",
            "memory.next_page",
            "memory.search",
            "namespace.list",
            "ops.capabilities",
            "ops.health",
            "ops.overview",
            "profile.activity",
            "profile.evidence",
            "profile.list",
            "profile.reads",
            "profile.render",
            "profile.schema_get",
            "profile.structured",
            "profile.users",
            "search.query",
            "store.export",
            "token.list",
            "tracker.duplicate_check",
            "tracker.get",
            "tracker.list",
            "tracker.search",
        }
    ),
    secrets=frozenset({"dashboard.link", "token.mint"}),
)


class Planes:
    """Every plane, waiting for each answer."""

    def __init__(self, run: Run) -> None:
        self.audit = Audit(run)
        self.code = Code(run)
        self.context = Context(run)
        self.conversation = Conversation(run)
        self.dashboard = Dashboard(run)
        self.knowledge = Knowledge(run)
        self.memory = Memory(run)
        self.namespace = Namespace(run)
        self.ops = Ops(run)
        self.profile = Profile(run)
        self.search = Search(run)
        self.store = Store(run)
        self.token = Token(run)
        self.tracker = Tracker(run)


class AsyncPlanes:
    """Every plane, awaited."""

    def __init__(self, run: AsyncRun) -> None:
        self.audit = AsyncAudit(run)
        self.code = AsyncCode(run)
        self.context = AsyncContext(run)
        self.conversation = AsyncConversation(run)
        self.dashboard = AsyncDashboard(run)
        self.knowledge = AsyncKnowledge(run)
        self.memory = AsyncMemory(run)
        self.namespace = AsyncNamespace(run)
        self.ops = AsyncOps(run)
        self.profile = AsyncProfile(run)
        self.search = AsyncSearch(run)
        self.store = AsyncStore(run)
        self.token = AsyncToken(run)
        self.tracker = AsyncTracker(run)
