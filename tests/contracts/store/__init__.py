"""The contract of a session store over any database engine, as a test suite for pytest.

The suite does not depend on an engine or a file. To run it against an engine, derive a class with two fixtures: `store`
and `other`, each an empty store without a redactor.

    class TestMyEngine(StoreContract):
        @pytest.fixture
        def store(self) -> Iterator[SessionStore]: ...

        @pytest.fixture
        def other(self) -> Iterator[SessionStore]: ...
"""

from tests.contracts.store.conversations import ConversationContract, SessionListContract
from tests.contracts.store.deletion import DeletionContract, ReplacementContract
from tests.contracts.store.feed import FeedContract
from tests.contracts.store.items import ItemContract
from tests.contracts.store.lineage import LineageContract, ProjectContract, TodoContract
from tests.contracts.store.messages import ExternalIdContract, MessageContract
from tests.contracts.store.rewind import RewindContract
from tests.contracts.store.rotation import RotationContract
from tests.contracts.store.scopes import ScopeContract
from tests.contracts.store.sessions import PromptContract, SessionContract, TitleContract
from tests.contracts.store.transfer import TransferContract


class StoreContract(
    SessionContract,
    MessageContract,
    ExternalIdContract,
    RewindContract,
    RotationContract,
    TitleContract,
    LineageContract,
    SessionListContract,
    ProjectContract,
    ConversationContract,
    DeletionContract,
    TransferContract,
    TodoContract,
    ScopeContract,
    FeedContract,
    ItemContract,
    ReplacementContract,
    PromptContract,
):
    """All parts of the contract."""
