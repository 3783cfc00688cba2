"""What a session store must do, whatever database is below it.

A test suite for pytest that knows no engine and no file. To run it against an engine, derive a class and give it two
fixtures: `store` and `other`, each an empty store without a redactor.

    class TestMyEngine(StoreContract):
        @pytest.fixture
        def store(self) -> Iterator[SessionStore]: ...

        @pytest.fixture
        def other(self) -> Iterator[SessionStore]: ...
"""

from memoranda.testing.following import FollowingContract
from memoranda.testing.lineage import LineageContract
from memoranda.testing.lists import ListContract
from memoranda.testing.messages import MessageContract
from memoranda.testing.projects import ProjectContract
from memoranda.testing.rotation import RotationContract
from memoranda.testing.scopes import ScopeContract
from memoranda.testing.sessions import SessionContract
from memoranda.testing.taking_back import TakingBackContract
from memoranda.testing.titles import TitleContract
from memoranda.testing.transfer import TransferContract
from memoranda.testing.upkeep import UpkeepContract
from memoranda.testing.views import ViewContract


class StoreContract(
    SessionContract,
    MessageContract,
    TakingBackContract,
    RotationContract,
    TitleContract,
    LineageContract,
    ListContract,
    ProjectContract,
    ViewContract,
    UpkeepContract,
    TransferContract,
    ScopeContract,
    FollowingContract,
):
    """All parts of the contract."""
