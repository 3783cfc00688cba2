"""Recognises prompts that ask to continue, or what was done last: their words match nothing that was said then.

A prompt asks this only if every word of it belongs to such questions: "go on" asks to continue, "go on with the second
paragraph" is about what is on the screen. Then one of a few patterns must say what is asked. Scripts without spaces are
recognised by whole phrases. A hook reads every prompt, so this module loads nothing but `re`, and compiles a pattern
only for a prompt of such words.
"""

import re

from memoranda.support.lazy_pattern import compile_later

_MAX_CHARS = 160
_MAX_WORDS = 18
# English, German, French, Spanish, Portuguese, Italian, Russian.
_WORD_LIST = """
a about accomplish accomplished afternoon again ago ahead all alright am and are around at away back been before bring
busy can carry catch chat continue conversation could current currently date day days did discuss discussed discussing
do doing done earlier end ended evening everything exactly far few fill finish finished for forgot friday from get
getting give go going gone good got great had happened have having hello here hey hi how i i'd i'm i've in is it it's
its job just keep know last lately latest leave left let let's list me memory middle monday month morning most my need
next night now of off ok okay on open our out outstanding over part pending pick picking place please point previous
previously prior proceed progress project quick quickly ready recap recent recently refresh remaining remains remember
remind repo resume right same saturday session sessions should show so speed spot stand start started state status
step steps still stood stop stopped stuff sum summarise summarize summary sunday talk talked talking task tasks tell
thank thanks that the then there thing things this thread through thursday time to today todo todos together topic
tuesday unfinished up us want was we we'd we're we've wednesday week well were what what's when where where's which
while with work worked working would yes yesterday yesterday's you your
avancé avanzamos avons-nous continuiamo erledigt es faisais faisiez faltan faut fertig hacemos kurze kurzen kurzer
mañana muss müssen quedan rest reunión semana semanas siguen stehengeblieben suivante terminar unerledigt werden wurde
aktuelle aktuellen alles als also an angefangen arbeit arbeite arbeiten arbeitest auf aufgaben aufgehört besprochen
bin bitte bringe da damit dann das dem den denn der die dienstag diese diesem dinge donnerstag dort dran du eigentlich
ein einmal fahr fahre fahren fass fasse fort fortfahren fortsetzen freitag für gearbeitet geblieben geht's gekommen
gemacht gerade geschafft gespräch gestern getan gibt gut guten hab habe haben hallo hast hat hatte hatten heute hier
ich im ist ja jetzt kannst kurz können könnten lass letzte letztem letzten letzter letztes los mach mache machen
machst mal mich mir mit mittwoch moin montag morgen na nach neuesten noch nochmal nächste nächsten nächster nächstes
offen offene offenen projekt sag saß schritt schritte setz setze setzen sind sitzung soll sollen sollten stehen stehst
steht tu tun und uns unser unsere unserem unserer vom von vor vorgestern war waren warst weit weiter weitermachen weiß
weißt wie wir wird wo woche womit woran zeig zu zuletzt zum zur zusammen zusammenfassen zusammenfassung übrig
a-t-on accompli ai ai-je ainsi allez alors après arrêté arrêtée arrêtés as as-tu au aujourd'hui avais avait avance
avancement avions avons bon bonjour c'est ce cette chose choses comme continuer continuons d'accord d'hier dans de
depuis dernier derniers dernière dernières des dis dis-moi discuté déjà dû en en-est encore est est-ce est-on et faire
fais fais-moi faisai faisait-on faisions fait fini fois il j'ai j'étais je jour l'état la le les là ma maintenant
matin mes moi mon mémoire notre nous où par parlait parler parlé plaît pour poursuis poursuivons prochain prochaine
projet précédent précédente qu'ai-je qu'avons-nous qu'est-ce qu'il qu'on quand que quelle quelles quoi rappelle
rappelle-moi reprend reprendre reprends reprenons restait reste reste-t-il resté restés récap récapitulatif récemment
résume résumé s'est s'il s'était salut semaine sommes sommes-nous suis suite sur te tous tout travail travaillais
travaillait travaillait-on travailler travaillions travaillions-nous travaillé tâche tâches un une va vas vas-y veux
vous y à étais étais-je était étape étapes étions étions-nous été
adelante ahora al anoche anterior antes aquí ayer buenas bueno buenos con continua continuar continuemos continúa
continúe conversación cosas cuál cuáles dejamos dejé del desde dime donde día días dónde el ella era esta estaba
estabamos estado estamos este esto estábamos falta faltaba favor haber hablamos hacer haciendo hacíamos hago has he
hecho hemos hice hicieron hicimos hola hoy iba ibamos igual las lo lunes martes mejor mi misma mismo no nos nuestra
nuestro pasada pasado paso pasos pendiente pendientes poco ponme por proyecto próximo puedes queda quedaba quedamos
quedé quedó qué recuerdame recuérdame resumen resúmeme retoma retomamos retomar retomemos sabes se seguimos seguir
sesión siga sigamos sigo sigue sigues siguiente son tarea tareas tenemos terminamos tiempo toca trabajamos trabajando
trabajar trabajo trabajábamos trabajé una vale vamos ver vez viernes ya íbamos última últimamente último
agora amanhã bom coisas com continuamos dia e ele em essa esse estava estávamos eu faltando fazendo fazer feito
ficamos fiz fizemos foi hoje isso mesmo minha nas nossa nós o oi olá onde ontem os ou para parado paramos parei
passada passo pelo pendente posso prossegue prossiga quais qual resta resumo retome sessão seu tarefa tarefas temos
trabalhamos trabalhando trabalhar trabalhei trabalho tudo você às é
abbiamo adesso allora andiamo arrivati arrivato attività avanti avevamo avevo buongiorno che ci ciao cosa così dal
dalla della di dimmi dopo dove eravamo ero fa facciamo facendo facevamo facevo fare fatto fermati fermato finora ho
ieri l'ultima lavorando lavorare lavorato lavoro manca mancano nel nella noi non oggi ora per prima progetto prosegui
proseguiamo prossimo punto quale quali restano riassumi riassunto ricordami rimane rimasti rimasto riprendere riprendi
riprendiamo scorsa sessione settimana siamo sono sta stato stava stavamo stavo su ti vai volta è
а в вчера вчерашней вчерашнюю где давай давайте дальше дела делал делала делали день до доброе еще ещё закончили и из
как какая какие какой ладно места место мне мы на над нам напомни нас неделе ну о осталось остановились остановился
открытые план по подскажи пожалуйста последнее последней последний последняя предстоит привет продолжаем продолжай
продолжайте продолжи продолжим продолжить проект проекте проекту прошлой прошлом прошлый работа работал работали
работе работу раз раньше с сделал сделала сделали сделано сделать сегодня сейчас сессии сессию следующий со статус
стоим так там текущий того том у утро чего чем что чём шаг этим это эту я
"""
_WORDS = frozenset(_WORD_LIST.split())
_CONTINUE = (
    r"\b(?:continue|continuing|resume|proceed|carry on|go on|keep going|pick\w*(?: \w+)?(?: back)? up|pick up"
    r"|get back|back to (?:work"
    r"|where)|weiter\w*|fortsetzen|fortfahren|fort|continu\w+|reprends?|reprenons|reprendre|poursui\w+|vas-y"
    r"|sigue|siga|sigamos"
    r"|seguimos|seguir|adelante|retom\w+|contin[uú]\w+|pross\w+|prosegu\w+|riprend\w+|avanti|продолж\w+|дальше)\b"
)
_TIME = (
    r"\b(?:yesterday(?:'s)?|last|earlier|previous(?:ly)?|recent(?:ly)?|lately|so far|today|this (?:week"
    r"|morning)|before|\w+day"
    r"|gestern|vorgestern|heute|zuletzt|letzte\w?|hier|derni[eè]re?s?|aujourd'hui|récemment|précédente?|ayer"
    r"|anoche|hoy|última"
    r"|último|últimamente|pasad[ao]|anterior|ontem|hoje|ieri|oggi|l'ultima|scorsa|finora|вчера\w*|прошл\w+"
    r"|сегодня|последн\w+)\b"
)
_DONE = (
    r"\b(?:summar\w+|zusammen\w*|résum\w*|res[uú]me\w*|riass\w+|did|done|doing|been|work|worked|working|talk\w*"
    r"|discuss\w*|finish\w*|accomplish\w*|happened|session|conversation|chat|tasks?"
    r"|gemacht|getan|geschafft|gearbeitet|besprochen|angefangen|arbeit|sitzung|gespräch|fait|faisait\w*"
    r"|travail\w*|fini|parl\w+|discuté"
    r"|hice|hicimos|hecho|hacíamos|haciendo|trabaj\w+|hablamos|sesión|fiz|fizemos|fazendo|feito|trabalh\w+"
    r"|sessão|fatto|facendo|facevamo"
    r"|lavora\w+|sessione|дела\w+|сдела\w+|работ\w+|сесси\w+)\b"
)
_WHERE = (
    r"\bwhere (?:do )?things stand\b|\b(?:where|how far|wo|womit|wie weit|où|d[oó]nde|onde|dove|che punto|где"
    r"|на ч[её]м|en qu[ée]|em que)\b.*\b(?:we|i|you|wir|ich|nous"
    r"|je|on|est-on|étions-nous|étais-je|sommes-nous|est[áa]bamos|qued\w+|dejamos|dej[ée]|[íi]bamos|vamos"
    r"|estamos|paramos|parei|ficamos|estávamos"
    r"|eravamo|ero|siamo|fermati|мы|остановил\w+)\b|\bon (?:en|s'est|s'était)\b.*\boù\b"
)
_LEFT = (
    r"\b(?:next|left(?! over)|pending|outstanding|unfinished|remain\w+|still open|open tasks|status"
    r"|current state|state of|noch|quedan|faltan|nächste\w?|offen\w*|übrig|steht.* an|stand"
    r"|reste(?:-t-il)?|prochaine?|suite|falta|queda|sigue|pendientes?|próximo|siguiente|resta|restano|manca\w*"
    r"|rimane|prossimo"
    r"|осталось|дальше|следующий|статус)\b"
)
_ASKS_WHAT = (
    r"\b(?:what(?:'s)?|which|how|was|welche\w?|wie|que|qu'\w+|quelles?|quoi|qu[ée]|cu[áa]l\w*|o que|qual\w?"
    r"|cosa|что|как\w*)\b"
)
_WAS_DOING = (
    r"\b(?:was|were) (?:i|we)\b.*\b(?:doing|working|up to|middle|busy)\b|\bworan\b|\bsur quoi\b"
    r"|\ben qu[ée] (?:est[áa]ba|trabaj)"
    r"|\bqu[ée] (?:est[áa]ba\w*|hac[íi]a\w*)|\bem que (?:est|trab)|\ba cosa\b|\b(?:stavo|stavamo)\b|\bнад чем\b"
)
_RECAP = (
    r"\b(?:catch me up|up to (?:speed|date)|recap|refresh my memory|fill me in|remind me (?:what|where)"
    r"|auf den .*stand|récap\w*"
    r"|ponme al día|напомни)\b"
)
_UNSPACED_BARE = (
    r"(?:请|請|那|好|好的)?[，,]?(?:继续|繼續|接着(?:做|来|干)?|接著做|我们继续)(?:吧|下去|做)?"
    r"|(?:続けて|続き(?:を(?:お願いします|やろう|しよう|頼む)?)?|続行(?:して)?)(?:ください)?"
    r"|(?:계속|이어서) ?(?:해|하자|해줘|해 ?주세요)?"
)
_UNSPACED = (
    r"(?:请|帮我)?(?:(?:我们|我們|咱们|我|上次|昨天|之前|刚才|上周|今天|前天|的|都|从|從|接着|继续|繼續|停下"
    r"|中断|结束|地方|工作|任务|对话|会话|项目|开始"
    r"|做|讲|进行|说|聊|干|弄|到|哪(?:儿|里|裡|一步)?|什么|什麼|些|了|讨论|完成|还|還|剩|有|没|要|下一步|接下来"
    r"|是|该|进度|进展|状态|如何|怎么样|现在|总结"
    r"|一下|回顾|在|吗|呢|事|未|为止|目前|到了|停|吧))+"
)
_UNSPACED_TRIGGER = (
    r"继续|繼續|接着|哪|(?:上次|昨天|之前|上周|今天|刚才|前天).*(?:什么|什麼|哪|工作|任务|进度|进展|讨论|做)"
    r"|(?:还|還)(?:剩|有).*(?:什么|没|哪)|下一步|接下来|进度|进展"
)
_JAPANESE_OR_KOREAN = (
    r"(?:前回|昨日|この前|さっき|先週|今日|今まで)?(?:は|の|に)?(?:私(?:たち)?は|僕は)?(?:どこまで(?:やった"
    r"|やりました|進んだ|進みました|終わった|終わりました|話した)(?:っけ|か)?"
    r"|続き(?:から|を)?(?:お願い(?:します)?|やろう|始めよう|始めて|しよう|再開)?|何を(?:し(?:た|ました|てた"
    r"|ていた|ていました)|やった|やってた|やりました)(?:っけ|か|の)?"
    r"|作業(?:を|の)?(?:続き|再開)(?:して|を)?(?:ください|お願いします)?)|(?:次|残り)は?(?:何|なに)(?:を(?:する"
    r"|すれば|しますか)|が残って)?(?:か|いますか|いる|ですか)?"
    r"|(?:어제|지난번에?|지난주에?|오늘)? ?(?:뭐|무엇을|어디까지) ?(?:했지|했더라|했어|했나요|했습니까"
    r"|하고 있었지|했죠)|(?:지난번|어제) ?(?:하던 ?(?:일|거|작업)|작업)? ?(?:이어서|계속)(?: ?(?:하자|해줘|해))?"
    r"|남은 (?:일|작업)(?:이|은)? ?뭐(?:야|지)?|(?:우리 )?어디까지 했(?:지|더라|어)"
)
_MARKS = compile_later(r"[^\w'’ -]|(?<!\w)-|-(?!\w)|_")


def asks_what_was_done(prompt: str) -> bool:
    """Whether a prompt asks what was done, or to continue where the last conversation ended."""
    return _kind(prompt) == "asking"


def asks_to_continue(prompt: str) -> bool:
    """The same, or a bare "go on", which is about earlier work where a conversation begins with it."""
    return bool(_kind(prompt))


def _kind(prompt: str) -> str:
    """ "asking", "bare" for a mere "go on", or "" for every other prompt."""
    if len(prompt) > _MAX_CHARS:
        return ""
    text = " ".join(_MARKS.sub(" ", prompt.replace("’", "'")).split())
    if not text.isascii() and (kind := _kind_without_spaces(text)):
        return kind
    words = text.lower().split()
    if len(words) > _MAX_WORDS or not all(word in _WORDS for word in words):
        return ""
    text = text.lower()
    is_past = re.search(_TIME, text) and re.search(_DONE, text)
    if is_past or re.search(_WHERE, text) or re.search(_WAS_DOING, text) or re.search(_RECAP, text):
        return "asking"
    if re.search(_LEFT, text) and re.search(_ASKS_WHAT, text):
        return "asking"
    return ("asking" if re.search(_TIME, text) else "bare") if re.search(_CONTINUE, text) else ""


def _kind_without_spaces(text: str) -> str:
    joined = text.replace(" ", "")
    if re.fullmatch(_UNSPACED_BARE, joined):
        return "bare"
    asks = re.fullmatch(_UNSPACED, joined) and re.search(_UNSPACED_TRIGGER, joined)
    return "asking" if asks or re.fullmatch(_JAPANESE_OR_KOREAN, text) else ""
