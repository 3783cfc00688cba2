"""The contract of a session store over any database engine, as a test suite for pytest.

The suite does not depend on an engine or a file. To run it against an engine, derive a class with two fixtures: `store`
and `other`, each an empty store without a redactor.

    class TestMyEngine(StoreContract):
        @pytest.fixture
        def store(self) -> Iterator[SessionStore]: ...

        @pytest.fixture
        def other(self) -> Iterator[SessionStore]: ...
"""

from memoranda.testing.store_contract.conversations import ConversationContract, SessionListContract
from memoranda.testing.store_contract.deletion import DeletionContract, ReplacementContract
from memoranda.testing.store_contract.feed import FeedContract
from memoranda.testing.store_contract.items import ItemContract
from memoranda.testing.store_contract.lineage import LineageContract, ProjectContract, TodoContract
from memoranda.testing.store_contract.messages import ExternalIdContract, MessageContract
from memoranda.testing.store_contract.rewind import RewindContract
from memoranda.testing.store_contract.rotation import RotationContract
from memoranda.testing.store_contract.scopes import ScopeContract
from memoranda.testing.store_contract.sessions import PromptContract, SessionContract, TitleContract
from memoranda.testing.store_contract.transfer import TransferContract


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
