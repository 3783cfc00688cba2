"""The root of a word, which its derivations and synonyms share, and the light words that another wording may lack."""

import re
from functools import lru_cache

from memoranda.search.index.stemmer import stem

# Words between commas mean the same in an entry.
_SYNONYMS = """
begin commence launch, finish complete conclude, leave depart, buy purchase acquire, repair fix, edit change
modify alter adjust touch, delete erase remove, create generate, choose select pick, verify validate check test, send
dispatch mail, receive obtain, give provide supply grant, allow permit, forbid prohibit ban, approve authorize
authorise sign, release publish, install setup, fetch download, search query, display show, hide conceal, answer reply
respond response, talk speak conversation, help assist support, avoid shun, enjoy love, hate dislike detest, rename
retitle, close shut, goal aim target objective, reason cause, job occupation profession, boss supervisor manager,
employee worker staff, colleague coworker teammate, customer client, supplier vendor, company firm business, invoice
bill, price cost fee charge, salary wage, money cash, car vehicle automobile, bike bicycle, plane flight fly, trip
journey travel, vacation holiday, flat apartment, autumn fall, physician doctor, medication medicine drug, pill
tablet, ill sick, illness disease, glass spectacle, mother mum mom mama, father dad papa, grandmother grandma granny,
grandfather grandpa grandad granddad, spouse partner, picture image photo photograph, movie film, sofa couch, trash
garbage rubbish, phone telephone, web internet, wifi wireless wlan, laptop notebook, folder directory, function
method, setting option config configuration preference, secret credential, password passphrase passcode, error bug
defect, fail failure broken, library dependency, maintenance service, big large huge, small little tiny, short brief
concise terse, quick fast rapid speed, slow sluggish, early ahead, late delayed overdue behind, last final, main
primary principal, former previous prior, usual default standard, empty blank, whole entire, correct right, wrong
incorrect, important essential vital crucial, mandatory compulsory obligatory, optional voluntary, separate distinct,
weekly week, monthly month, daily day, yearly annual annually year, hourly hour, nightly night, indent indentation,
interval frequency often, permission access, licence license, expire expiry expiration, renew renewal, neighbour
neighbor, centre center, colour color, grey gray, lesson class course, pupil student, exam examination, dinner supper,
lunch midday noon, drink beverage, address residence, weekday workday, random arbitrary, automatic auto automatically,
threshold limit bound, minimum least lower, maximum most upper, meeting sync call, deadline due, reserve book, feed
fed, freeze frozen froze, teach taught, wear wore worn, sleep slept, hang hung, stick stuck, draw drew drawn, grow
grew grown, throw threw thrown, know knew known, sing sang sung,
child kid, long lengthy
"""
_LIGHT_WORDS = """
able accept actual add address again along anyone anyway appropriate arrange aside assign available basically become
better bitte box bring cada carry certain chaque check cluster command como consider definitely diet display dr
effectively either else employ enable ensure entry especially etre even everybody everyone everywhere exactly face
fact faut feature find fine form format frau fully further good great hacen herr i'm immer include indeed involve it's
item job language let lie likewise lot machine manner mas matter merely message miss mochte mode model much
nice normally nowadays obviously offer okay part particular perform piece pipeline plus point port possible practice
preferably present prof properly quite rate rather reach regularly relate remain result role see seem serve several
show shown simply sit situated situe sole sollen someone somewhere spot stack stand stay stets stick stuck
stuff style suite suppose sure tend that's there's they're though thus today together try typically various version
veut we're well whatever whichever year yet you'll you're you've
"""
_ROOT_OF = {
    root: stem(words.split()[0]) for words in _SYNONYMS.split(",") for word in words.split() for root in (stem(word),)
}
_LIGHT = frozenset(map(stem, _LIGHT_WORDS.split()))
_ENDING = re.compile(r"(?:[ai]nc|[ae]nt|ation|ition|ment|ship|er|or|ist|al|ur|ag|abl|iv|i|e)$")
_MIN_ROOT = 4


@lru_cache(maxsize=20_000)
def root_of(key: str) -> str:
    """What a stem is compared by: "storag" and "stor" of "store", "approval" and "approv" of "approve"."""
    if not key.isalpha() or not key.isascii():
        return key
    if key in _ROOT_OF:
        return _ROOT_OF[key]
    base = _ENDING.sub("", key)
    return _ROOT_OF.get(base, base) if len(base) >= _MIN_ROOT else key


def is_light(key: str) -> bool:
    return key in _LIGHT
