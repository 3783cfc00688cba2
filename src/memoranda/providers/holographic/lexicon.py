"""What words mean for telling whether two facts can both be right: kinds of words, and other words for the same."""

from memoranda.index.stemmer import stem


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _ordered(text: str) -> list[str]:
    return text.split()


def stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in text.split())


AUXILIARIES = _words("is are was were be has have had does do did can could should must will would may might")
DETERMINERS = _words("a an the its his her their my our your this that these those some any")
PREPOSITIONS = _words(
    "in at on to for with from by of about into over under as near without than since until during per via through"
    " between against behind beside within"
)
# Said on top of a statement without changing what it says.
FILLERS = _words(
    "also still really very currently now nowadays today always usually generally mostly only just even quite actually"
    " already officially again every each fully daily both yes please so too own aka alias"
)
NEGATIONS = _words("not no never nobody nothing none neither cannot")
# Verbs in the form in which they follow a plural.
BARE_VERBS = _words(
    "go run meet use need want live work like love hate prefer take get make keep start end open close begin happen"
    " smoke lead own speak eat drink drive wear play cost last expire depend belong come leave arrive land listen store"
    " send support require deploy host write read sit stand sleep wake report retry ship charge allow accept pay"
)
# With these an order begins: "Send invoices to billing".
ORDERS = _words("send use keep store put write deploy run call address ask")
PARTICIPLES = _words(
    "written kept done made held led paid run sold set built born sent stored taught given taken spoken driven put"
    " known seen shut bought chosen frozen hidden"
)
IRREGULAR_PAST = _words(
    "wrote went met got took came left kept ran built chose spoke knew saw gave found sent bought sold held led taught"
    " won lost began grew spent ate drove had was were made said told quit"
)
BEFORE = (
    "used to", "formerly", "previously", "in the past", "originally", "until", "at first", "back then",
    "years ago", "once",
)  # fmt: skip
DAYS = _words("monday tuesday wednesday thursday friday saturday sunday")
MONTHS = _words(
    "january february march april may june july august september october november december jan feb mar apr jun jul aug"
    " sep oct nov dec"
)
PARTS = _words(
    "morning afternoon evening night noon midnight spring summer autumn fall winter weekend weekends weekday weekdays"
    " today tomorrow am pm hour oclock week month year quarter"
)
UNITS = stems(
    "second seconds minute minutes hour hours day days week weeks month months year years euro euros dollar dollars"
    " pound percent kg kilo gram meter metre km mile gb mb kb tb ms times time people person old degree degrees floor"
    " am pm cent cents point points"
)
_COUNTED = _ordered(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen twenty"
)
NUMBERS = {word: str(number) for number, word in enumerate(_COUNTED)} | {
    "first": "1st", "second": "2nd", "third": "3rd", "fourth": "4th", "fifth": "5th", "half": "0.5", "dozen": "12",
}  # fmt: skip

# Groups of words of which only one is true of a thing at a time.
_EXCLUSIVE = """
enabled disabled | on off | public private | open closed | true false | active inactive | online offline | free paid
| required optional forbidden | mandatory optional | allowed forbidden | single married divorced widowed engaged
| alive dead | empty full | vegetarian carnivore | left right | indoor indoors outdoor outdoors | local remote
| synchronous asynchronous | stable unstable | temporary permanent | safe dangerous | hot cold | early late
| short long detailed brief verbose | light dark | small large | cheap expensive | fast slow | formal informal
| always never | first last | beginner expert | available unavailable | visible hidden | automatic manual
| introvert extrovert | deprecated supported | pass fail | up down | read-only writable | quiet loud | with without
| left-handed right-handed | tabs spaces | introverted extroverted | lossy lossless | encrypted unencrypted
| asleep awake | pregnant childless | employed unemployed retired | wet dry | sweet savoury | monolith microservices
"""
EXCLUSIVE = [stems(group) for group in _EXCLUSIVE.split("|")]

# Other words for a verb; "-" before one that says the opposite.
_VERBS = """
live reside dwell | work | like love enjoy adore -hate -dislike -loathe -detest | prefer want favour | wake rise
| start begin | end finish expire | cost | own possess | need require | support | store save keep
| eat | drink | approve -reject -refuse | allow permit -forbid -prohibit -block | include contain -exclude -lack
| close shut | send go | lint check | maintain | meet gather | speak | reply answer -ignore | accept -decline
| enable -disable | trust -distrust -mistrust | survive keep -lose | agree -disagree | succeed pass -fail | use
"""
VERBS: dict[str, tuple[str, bool]] = {}
for _group in _VERBS.split("|"):
    _first, *_others = _group.split()
    for _word in (_first, *_others):
        VERBS[stem(_word.lstrip("-"))] = (stem(_first), _word.startswith("-"))

# Verbs that say of a thing what a noun could: "X reports to Y" is "X's manager is Y".
_ATTRIBUTES = """
place: live in | live at | base in | locate in | locate at | settle in | move to | relocate to | store in | store on
| keep in | reside in | save in | sit on | sit in | live on | park in
employer: work at | work for | employ by
manager: report to | manage by | supervise by | answer to
language: write in | implement in | code in | build in
host: host on | host at | host in | host by | deploy on | deploy to | deploy in | deploy at | run on | host with
owner: own by | maintain by | belong to | responsible for | look after by
lead: lead by | head by | run by
deployer: deploy by
job: work as
name: call | name
spouse: marry to
wake: wake at | get at | rise at
deadline: due on | due in | due by | due at
payer: pay by | fund by | finance by | cover by
price: cost
weight: weigh
fuel: heat with | heat by | run with | power by
linter: lint with | lint by
port: listen on | serve on
address: reach at | find at
birth: bear in | bear on | born in | born on
"""
ATTRIBUTES: dict[tuple[str, str], str] = {}
for _line in _ATTRIBUTES.replace("\n|", "|").strip().splitlines():
    _noun, _, _uses = _line.partition(":")
    for _use in _uses.split("|"):
        _verb, _, _preposition = _use.strip().partition(" ")
        ATTRIBUTES[(stem(_verb), _preposition.strip().removeprefix("after "))] = _noun

# What somebody is says what they do not do.
IMPLIED = {
    stem(word): (stem(verb), stem(thing))
    for word, verb, thing in (
        ("vegetarian", "eat", "meat"), ("vegan", "eat", "meat"), ("teetotal", "drink", "alcohol"),
        ("teetotaler", "drink", "alcohol"), ("non-smoker", "smoke", ""), ("nonsmoker", "smoke", ""),
    )
}  # fmt: skip

# Other nouns for an attribute.
_NOUNS = """
place home residence city location house whereabouts | manager boss supervisor superior | owner maintainer
| employer company workplace | language | deadline | address url link | colour color | timezone zone | spouse husband
wife partner | price cost fee | database db | editor ide | birthday | licence license | lead leader head | fuel energy
| photo picture | favourite favorite | mobile phone | job occupation profession trade | repo repository
| team group squad | mail email
"""
NOUNS = {stem(word): stem(group.split()[0]) for group in _NOUNS.split("|") for word in group.split()}

# Attributes of which a thing has many, and what is done to one thing after another.
MANY = stems(
    "hobby friend colleague member sibling brother sister child book film skill goal feature issue contributor pet"
    " class course tag note task problem interest topic user customer client visitor strength weakness"
)
AGAIN = stems(
    "like love enjoy visit know read watch fix attend see call ask tell help try test install review pair include"
    " contain support mention discuss write handle cover"
)
# Whatever somebody likes or wants.
TASTE = stems("like prefer want")
# Who does these does what the subject names: "deployments are done by Jenkins".
DOING = stems("do make handle perform execute manage run carry")
# Verbs with one place, one receiver or one source at a time.
SETTLED = stems(
    "live reside sit stay store keep host deploy run go send listen serve lie belong end begin start land depart park"
    " sleep open close meet happen arrive expire point lead locate kept due take leave wake last retire return"
)
# What happens once, so that two times for it cannot both be right.
ONCE = stems("born bear join found die marry graduate retire launch release move begin start quit leave hire open")
# Verbs of which the object is the only one.
CHOSEN = stems("prefer favour prefers default main")
LIGHT = stems("is be have use set call name equal run take get need want do")
# A word that only says what kind of thing a name is.
KINDS = stems("project app application tool system program package library product company proxy service team")
# Nouns that stand for a property: what follows "is" is its value, of which there is one.
PROPERTIES = stems(
    "colour editor shell language licence name title type kind level mode branch server database host owner manager"
    " lead address password username default favourite main primary preferred timezone place employer deadline birthday"
    " capital size version release format theme font port limit timeout model brand breed method status role job"
    " currency linter formatter framework payer fuel deployer spouse price weight budget salary age number nickname"
    " surname ceo cto cfo president chair director captain author doctor teacher supplier vendor provider region zone"
    " domain backend engine compiler runtime protocol interval frequency destination origin source target meal drink"
    " dish team sport nationality religion diet size height width length capacity maximum minimum threshold"
)
# Nouns that say which property a number or a name is of, wherever they stand.
TELLING = stems("licence license timezone port budget password salary timeout height weight editor")
