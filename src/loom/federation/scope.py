"""Which repository the namespace of a call stands for, and where its issues are."""

from collections.abc import Iterator
from functools import partial

from loom.access import namespaces
from loom.access.namespaces import Binding
from loom.federation.legs import read
from loom.ops.spec import Prepare
from loom.planes.leg import CodeScope
from loom.storage.interface import Transaction

CODE, TRACKER = "code", "tracker"


def code_scope(prepare: Prepare, org: str, namespace: str) -> CodeScope | None:
    """The code scope that `namespace` is: one of kind code that is bound to a repository; None when it is none.

    It is looked for in the request's org, then in the one that keeps the caller's code.
    """
    for code_org in dict.fromkeys((org, prepare.org_of(CODE, org))):
        binding = read(prepare, code_org, partial(namespaces.code_scope, name=namespace))
        if binding is not None:
            tracker_org = prepare.org_of(TRACKER, org)
            tracker = read(prepare, tracker_org, partial(_tracker, prepare, binding))
            return CodeScope(binding.repository, code_org, namespace, tracker_org, tracker)
    return None


def _tracker(prepare: Prepare, binding: Binding, tx: Transaction) -> str:
    """The fittest namespace with the repository's issues; empty when there is none."""
    return next(_trackers(prepare, tx, binding), "")


def _trackers(prepare: Prepare, tx: Transaction, binding: Binding) -> Iterator[str]:
    """Namespaces with the repository's issues that the caller reaches, the fittest first.

    The one that the binding names; those bound to the same repository, of which the last written comes
    first; the one that is called as the code is.
    """
    same = namespaces.of_repository(tx, binding.repository, TRACKER) if binding.repository else ()
    for name in (binding.tracker, *same, binding.name):
        reached = prepare.caller.namespaces is None or name in prepare.caller.namespaces
        if name and reached and namespaces.read(tx, name) is not None:
            yield name
