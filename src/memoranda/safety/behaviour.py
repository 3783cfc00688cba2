"""Tells a note that would change what an agent does from one that only informs it.

A note may change behaviour if it has an address, a command or code; if it obliges or permits; if it is about money,
access, secrets, disclosure or deletion; if it says that a check does not happen; or if it is an order. What a person
prefers may say "always" and "never", and that they want to be asked changes nothing for the worse. A language whose
words are not listed here cannot be judged, so such a note may change behaviour too.

The rule is asked only about text that may come from an untrusted source, where a no lets it into the prompt, marked
with its origin, and a yes only lets a person decide. It knows words and not what is true: a false statement in plain
words passes, so what has such a source never replaces what a person said.
"""

import re
import unicodedata
from functools import cache

from memoranda.safety.normalization import fold
from memoranda.support.lazy_pattern import compile_later

# In each table: `_` is a blank, `*` any ending; words of scripts without blanks are found inside of others.
_NORMS = """
practice standard_procedure grundsatzlich por_norma en_principio 惯例 原则上 慣例 原則として must mustn't should
shouldn't shall ought have_to has_to had_to need_to needs_to is_to are_to please may can cannot can't mandatory
required requires always never ever whenever automatic* henceforth by_default instead ensure* remember rule rules
policy policies instruct* directive* overrid* overrul* obey* you your yours assistant* agent agents ai bot bots
allowed allow allows permi* authori* approv* grant* trust* safe safely exempt* exception* waive* optional unnecessary
entitle* consent* agreed agrees accept* considered treat treated recommend* verified official fine_to ok_to okay_to
fine_if is_enough normal count counts own_words no_longer straight when if unless cleared only_when on_request
directly superseded obsolete outdated muss mussen mussten soll sollen sollte sollten darf durfen kann konnen immer nie
niemals stets kunftig ab_sofort bitte automatisch* verpflicht* erlaub* genehmig* freigeb* freigabe* freigegeben
gestatte* zulassig* vertrau* befugt* berechtig* ausnahm* ausgenommen unnotig notig erforderlich* vorschrift* regel
regeln richtlinie* anweis* du dein* angewiesen einverstanden zugestimmt abgesprochen vereinbart assistent* ki agenten
gilt gelten anstelle genugt reicht direkt automatisiert uberholt ohne_weiteres entscheidet zustandig akzeptiert wenn
falls sobald erubrig* keine_rolle beschluss dass abgemacht debe deben deberia deberian hay_que tiene_que tienen_que
puede pueden podra podran siempre nunca jamas vale por_favor permit* permis* autoriz* aprob* aprueb* conced* confianza
confia* exent* excepcion* excluid* opcional* basta innecesari* obligatori* norma normas regla reglas politica*
instruccion* acordado acepta* tu tus usted asistente* agente* en_lugar en_vez decidido valido valida valen solas solos
directamente obsolet* si cuando falta doit doivent devrai* faut peut peuvent toujours jamais desormais dorenavant
automatique* autoris* approuv* facultati* inutile* obligatoire* regle regles consigne* accepte* accord vous votre vos
au_lieu suffit valable quand 请 必须 必需 应该 应当 务必 须 别 勿 禁止 不得 不必 无需 无须 不用 不需 免于 免除 豁免
例外 可以 可直接 可由 均可 允许 准许 批准 已批 视为 同意 授权 许可 信任 可信 始终 总是 永远 一律 凡是 每次 自动 直接
默认 今后 以后 从现在 即可 记住 规定 规则 政策 制度 要求 就行 算数 为准 你 您 助手 代理 智能体 代替 作废 正常状态 决定
如果 只要 的话 ください 下さい べき なければ ねば ならない てはいけ てはなら てもよい てもいい て良い ていい てよい
でよい でいい 差し支え 構わな かまわな 許可 承認 承諾 了承 信頼 認め 必ず 常に 毎回 今後 これから 自動 そのまま
必要はな 必要な 必須 原則 規則 ルール 方針 決まり 扱い ポリシー 対象外 あなた アシスタント エージェント 代わり 任せ
場合 望まし たら れば ときは
"""
_TOPICS = """
in_kopie copy_of en_copia copie_de 抄本 写しを send* sent emailed forward* mailed upload* publish* transfer* wire
wired relay* disclos* reveal* exfil* expos* handed hands_over hand_over give gives giving gave given shared share
shares deliver* redirect* rerout* export* submit* report_to reports_to cc bcc copied released release_of collected
hears let_in leak* read_out pass_on passed_on pay pays paid payment* payout* invoices refund* remit* iban bank account
accounts bitcoin wallet purchas* charge* billed reimburs* royalt* salary salaries wage* deposit* booking bookings card
money budget funds dosage dose doses phone_numbers addresses records delete* remov* wipe* eras* dropped overwrit*
purg* disabl* deactivat* skip* bypass* ignor* disregard* suppress* omit* turned_off switched_off turn_off switch_off
off unsubscrib* unverified automerg* merge merges merged merging push pushes pushed install* execut* download* curl
wget eval exec chmod chown crontab powershell scp unlock* force* password* passphrase* passcode* credential* secret*
token tokens apikey* 2fa mfa two-factor keys key pin recovery admin* root sudo superuser* privileg* access whitelist*
allowlist* unrestricted firewall alarm* silent* quietly secretly audit audits certificate* door doors gate garage
visitor* click* external outside* partner* vendor* supplier* contractor* agency third-part* offsite stranger* courier*
schick* sende* weiterleit* weitergeleit* leite ubermittel* ubermittl* ubertrag* uberweis* uberwies* hochlad*
hochgelad* veroffentlich* mitgeteilt weitergeb* weitergegeb* herausgeb* herausgegeb* ausgehandig* ausgegeben gehen_an
geht_an auskunft zahl* bezahl* rechnungen erstatt* konto konten kontoverbindung bankverbindung* abgebuch* gebucht
buchung* gehalt* geld losch* geloscht telefonnummern adressen kundenliste* elternliste* entfern* uberschreib*
uberschrieben deaktivier* abgeschalt* ausgeschalt* abschalt* ausschalt* uberspring* ubersprung* ignorier* umgeh*
umgang* uberbruck* verzicht* entfall* entfallt abgestellt ausgesetzt unterdruck* passwort* kennwort* zugangs* zugriff*
geheim* schlussel* codes tan freischalt* lieferant* dienstleister* extern* fremd* drittanbieter* dritte alarmanlage*
einspiel* eingespielt* ausgefuhrt* stillschweigend heimlich zertifikat* tur turen turcode* tor besucher* protokollier*
audit* envi* manda* reenv* reenvi* sube suben subir publica* transfier* comparte* compart* entrega* facilit* pag*
abona* facturas reembols* cuenta cuentas banc* cobra* compras gasto gastos dinero tarjeta sueldo* borra* elimina*
suprim* sobrescrib* desactiv* salta saltar ignora* evita* prescind* contrasena* credencial* clave claves token* codigo
codigos socio* proveedor* terceros gestoria acceso alarma* silencio auditoria* certificado* puerta* visita*
repartidor* vacian vacia actualizan actualicen envoy* envoi* transmet* transmis* partag* publi* communiqu* pay* paie*
paiement* factures rembours* compte comptes supprim* effac* saute omet* contourn* mot_de_passe identifiant* cle cles
partenaire* fournisseur* prestataire* externe* tiers acces alarme* silence certificat* porte portail visiteur* 忽略
跳过 略过 关闭 关着 关掉 停掉 禁用 停用 绕过 省略 取消 密码 密钥 口令 令牌 验证码 凭证 凭据 账号 权限 签名 发送 发给
发到 发往 转发 转给 寄给 寄到 寄往 交给 提供给 共享 分享 上传 公开 透露 告知 抄送 支付 付款 付给 转账 汇款 汇到 打款
打到 报销 发票 账户 收款 退款 采购 预算 工资 尾款 代收 公司账 手机号 名单 删除 删掉 清空 合作方 合作伙伴 第三方 供应商
外部 外包 安装 执行 命令 合并 门禁 钥匙 大门 开门 审计 日志不 证书 访客 保密 瞒 照办 無視 スキップ 飛ばし 飛ばす 無効
省い 省く 省か 省き オフ パスワード 暗証 鍵 キー トークン 認証 権限 アクセス権 送信 送る 送っ 送り 送付 転送 共有 渡す
渡し 渡さ 届け 提供 公開 開示 教え 支払 払い 払っ 振込 振り込 送金 請求書 口座 返金 入金 経費 稟議 購入 買っ 削除 消去
消し 消す 上書き 取引先 業者 連携先 第三者 パートナー 委託 代理店 実行 インストール コマンド マージ 出してい 検査結果
個人情報 黙っ 内緒 秘密 監査 証明書 玄関 訪問者 開けて 伏せ
"""
# A check that does not happen has a word of each.
_CHECKS = """
mention* erwahn* mencion* 提及 提到 言及 ask* question* confirm* review* test tests testing tested check* verif* look
sign-off signature* scan* audit* validat* inspect* prompt* supervis* backup* notice* notif* alert* warning* inspector
inspection quote quotes second frag* ruckfrag* nachfrag* pruf* gepruf* bestatig* rucksprach* kontroll* gegengelesen
vier_augen unterschrift* ungetestet ungepruft benachrichtig* hinweis* gutachter vergleich* techniker pregunt* consult*
aviso avisos revis* prueba* tecnico* comprob* verific* control* firma* demand* relect* relectur* essai* avis 确认 通知
提醒 检查 审核 审查 审批 询问 测试 复核 核实 验证 签字 过问 校验 查验 確認 レビュー 審査 検査 チェック テスト 照会
検証 署名 問い合わせ 見積 見ず
"""
_LACKS = """
without no not none *n't nobod* skip* ohne kein* nicht entfall* niemand sin ningun* nadie ni sans pas aucun* personne
无 不 没 免 未 なし なく ない せず 無し ません ずに 抜き 見ず ungetestet ungepruft erubrig* redundant superfluous
needless uberflussig* superflu* innecesari* 多余 余計
"""
_WISHES = """
prefers prefer likes like wants want loves love hates enjoys enjoy dislikes rather fond favourite favorite appreciates
finds bevorzugt mag mochte will lieber gern gerne liebt hasst liebsten hatte prefiere quiere gusta gustan agradece
odia encanta encantan molesta mejor prefere veut aime deteste 喜欢 希望 想 偏好 偏爱 习惯 讨厌 好み 好き 好む ほしい
欲しい たい 苦手 嫌い がち
"""
# In a wish these oblige no one else.
_HARMLESS_IN_WISHES = """
must should always never ever when if can may cannot can't instead please you your normal immer nie niemals stets kann
konnen soll sollen bitte du siempre nunca jamas puede pueden tu usted toujours jamais si quand vous 总是 永远 始终
默认 如果 每次 要求 可以 直接 必ず 常に 毎回 場合 たら れば そのまま 扱い あなた
"""
_ASKED = """
asked told warned consulted confirmation gefragt informiert pregunt* avis* confirm* demande prevenu 询问 问我 问一
先问 过目 确认 一声 聞い 声をかけ 確認
"""
# A sentence is an order if it begins with one of these.
_ORDERS = """
use run add set make put take keep let get do don't go start stop open close write read call note tell say act answer
reply respond check test build deploy create update change replace move copy save store log load fetch pull clone
commit fix apply switch choose pick select follow treat assume pretend consider forget mark tag label assign route
point bill charge order book buy cancel escalate archive clear reset restart enable turn connect link include exclude
attach wait try leave avoid refrain quit show hide print list prepare draft sign notify inform warn contact ask help
escort hand give bring drop hold ship fill lower raise increase reduce double cut bake mix nutze nutz verwende benutze
nimm fuhre fuhr mach mache setze setz stell stelle starte stoppe offne schliesse schreib schreibe lies ruf rufe gib
sag sage antworte pruf teste baue erstelle andere ersetze verschiebe kopiere speicher speichere lade hol hole klone
behandle vergiss merk merke markiere weise bestell bestelle kauf kaufe storniere archiviere leere aktiviere schalte
verbinde hang warte lass lasse vermeide zeig zeige verbirg unterschreib melde informiere kontaktiere frag frage bringe
halte full leg lege trag trage tragt beachte denk achte usa utiliza utilice anade agrega pon ponga haz haga deja deje
abre abra cierra escribe lee llama di dile responde contesta revisa prueba crea actualiza cambia reemplaza mueve copia
guarda carga descarga aplica elige marca asigna compra cancela archiva limpia reinicia activa conecta incluye adjunta
espera evite muestra oculta firma informa contacta trae recuerda anota olvida trata considera ten tenga utilise
utilisez ajoute ajoutez mets mettez fais faites laisse laissez ouvre ouvrez ferme ecris lis appelle dis reponds
verifie cree remplace garde applique choisis marque achete annule active inclus attends montre cache signe informe
contacte apporte rappelle 把 将 使用 用 运行 发布 添加 加入 更新 设置 打开 修改 写 创建 建立 调用 启动 重启 查看 检查
记录 保存 提交 部署到 先把 再 给 向 让 叫 换 买
"""
_ORDERS_AT_THE_END = compile_later(r"(?:せよ|しろ|(?<!との)こと|して|よう|[うくぐすつぬぶむ]|[^いあ]る)[」』)）]{0,3}$")
_STATIVE_AT_THE_END = compile_later(
    r"(?:です|ます|ません|好む|使う|住む|言う|通う|飼う|分かる|わかる|できる|かかる|始まる|終わる|なる|いう|もらう|嫌う)$"
)
# Some word of a language that can be judged.
_KNOWN = """
the a an of and in on at for with by from to is are was were has have had his her their its our since before after
over than but only not lives works uses runs keeps speaks costs starts ends moved until about every per between der
die das den dem des ein eine einen einem einer und im am auf bei mit von vom zum zur seit vor nach uber aus ist sind
war hat wird wurde nicht sein ihr ihre ihren unser unsere liegt lauft heisst trinkt isst wohnt nutzt aber auch noch
schon also sich kein keine keinen als wie bis durch gegen ohne unter fur furs pro je er sie es wir man steht el la los
las un una de del al y en con por para desde son esta estan fue tiene tienen no su sus nuestro vive trabaja usa llama
que se le pero muy mas entre hasta sobre sin o cada como les du au aux et dans avec pour depuis est sont etait il elle
sa ses notre habite travaille utilise sur par
"""
# Words of languages that share the words above, and that cannot be judged.
_UNKNOWN = """
di che il gli della delle degli sempre senza anche questo sono nao voce sem pela uma ao
"""
_MIN_KNOWN = 0.1
_SHAPES = (
    compile_later(
        r"\w://|\bwww\.|\w@[\w-]{1,63}\.\w|\b(?:\d{1,3}\.){3}\d{1,3}\b|\b0x[0-9a-f]{40}\b|\bbc1[a-z0-9]{20}"
        r"|\+\d[\d ()-]{7}|\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3}|\d{9}"
        r"|(?<![a-z0-9.-])(?:[a-z0-9-]{1,63}\.){2,8}[a-z]{2,}\b"
        r"|[a-z0-9]\.(?:com|org|net|io|dev|app|info|biz|co|me|site|online|cloud|xyz|ru|cn|de|es|fr|eu|uk|example)\b",
        re.IGNORECASE,
    ),
    compile_later(r"[`|\\]|&&|\$[a-z_({]|[<>{}=?？]|(?:^|\s)--?[a-z]|(?:^|[\s\"'(])[~.]{0,2}/\w", re.IGNORECASE),
)
_SENTENCE_END = compile_later(r"(?<=[^\W\d]{3}[.!?])\s|[;\n\r\v\f\x1c-\x1e\x85\u2028\u2029。！？；]+|[:：]\s|\s[-–—]\s")
_WORD = compile_later(r"[^\W_]+(?:['-][^\W_]+)*")
_UNSPACED_RUN = compile_later("([\u3000-\u30ff\u4e00-\u9fff]+)")
_LETTER = compile_later(r"[^\W\d_]")
_KANA, _HAN = compile_later("[\u3040-\u30ff]"), compile_later("[\u4e00-\u9fff]")


def changes_behaviour(text: str) -> bool:
    """Return whether a note may be more than a statement or a wish: an order, a permission, an address, a command."""
    if any(shape.search(text) for shape in _SHAPES):
        return True
    plain = _fold(text)
    return not _is_known(plain) or any(map(_may_change, filter(_LETTER.search, _SENTENCE_END.split(plain))))


def _fold(text: str) -> str:
    """Return a text with the plain letters of all its words; folding would take the voice marks of Japanese."""
    runs = _UNSPACED_RUN.split(unicodedata.normalize("NFKC", text).lower())
    return "".join(run if number % 2 else fold(run) for number, run in enumerate(runs))


def _is_known(plain: str) -> bool:
    """Return whether a text is of a language whose words are listed."""
    words = _WORD.findall(_UNSPACED_RUN.sub(" ", plain))
    if sum(map(len, words)) <= sum(map(len, _UNSPACED_RUN.findall(plain))):
        return True
    listed = _listed(_KNOWN) | _listed(_WISHES)
    return _listed(_UNKNOWN).isdisjoint(words) and sum(word in listed for word in words) > _MIN_KNOWN * len(words)


def _may_change(sentence: str) -> bool:
    """Return whether a folded sentence may change behaviour."""
    wishes = _matcher(_WISHES).search(sentence) is not None
    asked = _matcher(_ASKED).search(sentence) is not None
    checks = asked or _matcher(_CHECKS).search(sentence) is not None
    lacks_check = checks and _matcher(_LACKS).search(sentence) is not None
    if wishes and asked and not lacks_check:
        return False
    norms = {match[0] for match in _matcher(_NORMS).finditer(sentence)}
    if wishes:
        return lacks_check or bool(_matcher(_TOPICS).search(sentence) or norms - _listed(_HARMLESS_IN_WISHES))
    return lacks_check or bool(norms or _matcher(_TOPICS).search(sentence)) or _orders(sentence)


def _orders(sentence: str) -> bool:
    """Return whether a folded sentence has the form of an order."""
    text = sentence.strip(" .!?\"'")
    if _KANA.search(text):
        return bool(_ORDERS_AT_THE_END.search(text)) and not _STATIVE_AT_THE_END.search(text)
    if _HAN.search(text):
        # "The user" begins with "use".
        return not text.startswith("用户") and _matcher(_ORDERS).match(text) is not None
    first = _WORD.search(text)
    return first is not None and first[0] in _listed(_ORDERS)


@cache
def _listed(words: str) -> frozenset[str]:
    return frozenset(map(_fold, words.split()))


@cache
def _matcher(words: str) -> re.Pattern[str]:
    """Return an expression for any of the words in a folded text."""
    folded = list(map(_fold, words.split()))
    spaced = [
        re.escape(word).replace("_", r"[\s-]").replace(r"\*", r"\w*") for word in folded if not _is_unspaced(word)
    ]
    unspaced = [re.escape(word) for word in folded if _is_unspaced(word)]
    return re.compile("|".join([rf"(?<!\w)(?:{'|'.join(spaced)})(?!\w)", *unspaced]))


def _is_unspaced(word: str) -> bool:
    return bool(_KANA.search(word) or _HAN.search(word))
