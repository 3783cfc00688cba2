"""Words by what they mean, in fourteen languages, for the rules that look at what a sentence does.

A sentence that sends passwords to an address outside is an attack in any word order and in any language, so its words
are reduced to concepts first, one bit each. A trailing `*` accepts every word that begins so: most of these languages
attach endings. Words of scripts without blanks are in `UNSPACED_CONCEPTS`; they are separated from their neighbours
first.
"""

from functools import cache

from memoranda.safety.normalization import blank_punctuation, fold

CONCEPTS: dict[str, str] = {
    "SEND": """
        send sends sending sent forward forwards forwarded forwarding email emailed mail mailed upload uploads uploaded
        uploading post posted transmit transmits transmitted transfer transferred share shared sharing leak exfiltrate
        copy copied copies push relay relayed bcc deliver submit sync paste pasted
        schick* geschickt sende senden gesendet sendest verschick* ubermittl* ubertrag* hochlad* hochgeladen lade
        weiterleit* weitergeleitet leite kopier* envoie* envoy* transmet* transferer transfere* partage* copie*
        telecharge* envia* envie* reenvia* reenvie* manda mande mandar comparte* sube subir copia* invia*
        inoltra* carica caricare condivid* mandare compartilh* encaminh* mande copie stuur* gestuurd verstuur* verzend*
        doorgestuurd doorsturen upload* kopieer* wysl* wysyl* przesl* przesyl* skopiow* kopiuj* отправ* пересыла*
        перешл* передай* передава* загрузи* скопир* копиру* gonder* ilet* yukle* kopyala* ارسل إرسال أرسل ترسل يرسل
        ارسال انسخ نسخ نسخت رفع ارفع حول भेज* भेजो भेजें भेजे कॉपी अपलोड
    """,
    "SECRET": """
        password passwords passphrase passcode credential credentials apikey apikeys secrets secretkey token tokens
        sshkey netrc cookie cookies privatekey recoverycodes seedphrase passwd wallet
        passwort* kennwort* zugangsdaten anmeldedaten geheimnis* zugangsschlussel schlussel passe motdepasse
        identifiants jetons secretes contrasena* credencial* claves senha* credenciais segredos credenziali chiavi
        segreti wachtwoord* inloggegevens sleutels hasla hasel haslo klucze kluczy парол* ключи ключей ключ учетн*
        токен* parola* sifre* anahtar* مرور المرور مفتاح مفاتيح المفاتيح पासवर्ड कुंजी कुंजियाँ टोकन
    """,
    "DATA": """
        conversation conversations transcript transcripts chat history memory memories inbox mailbox files documents
        notes data database contents content messages clients contacts recordings
        gesprach* unterhaltung* dateien daten nachrichten fichiers donnees conversation messages documents archivos
        datos conversacion mensajes documentos dati documenti conversazione messaggi arquivo arquivos dados
        conversa mensagens bestand bestanden gegevens gesprek berichten pliki plikow dane danych rozmow* wiadomosci
        файл* данны* переписк* сообщени* документ* dosya* verile* konusma* mesaj* belge* ملفات الملفات البيانات بيانات
        المحادثة الرسائل फाइल* फ़ाइल* डेटा बातचीत संदेश
    """,
    "OUTSIDE": """
        external outside outsider attacker webhook thirdparty offsite
        externe externen externer externes fremd fremden fremde fremder externo externa esterno esterna buitenstaander
        extern zewnetrzn* obcy obcego внешн* чужой чужому сторонн* dis disari yabanci harici خارجي خارجية الخارجي बाहरी
    """,
    "SERVER": "server servers serveur servidor servidores serwer* сервер* sunucu* خادم الخادم सर्वर endpoint url link",
    "USER": "user users owner human operator",
    "USER_ABROAD": """
        benutzer* nutzer* anwender* utilisateur lutilisateur usuario usuarios
        utente lutente allutente utilizador gebruiker gebruikers uzytkownik* пользовател* kullanici* المستخدم للمستخدم
        مستخدم उपयोगकर्ता यूजर उपयोगकर्ताओं
    """,
    "PREFER": """
        prefers prefer preference preferences preferred likes wants wishes wish wanted confirmed approves trusts asked
        requested favourite favorite considers happy bevorzugt mochte will wunscht wunsch prefere preferent veut
        souhaite prefiere prefieren quiere desea preferisce vuole desidera prefere preferem quer deseja wil graag
        verkiest voorkeur woli chce zyczy предпочит* хочет желает просит просил tercih istiyor ister يفضل يريد يرغب
        चाहता चाहते चाहती पसंद
    """,
    "STANDING": """
        always henceforth forever permanently whenever everytime immer kunftig sofort fortan stets toujours desormais
        dorenavant siempre adelante sempre voortaan altijd zawsze odtad teraz всегда отныне впредь
        momenta bundan artik daima دائما الآن فصاعدا हमेशा अब
    """,
    "RUN": """
        run runs running execute executes executed executing exec invoke install launch open opened obey
        ausfuhr* fuhre fuhrst fuhr ausgefuhrt execute* executer lance* ejecut* esegui* eseguire execute executar
        rode voer voert uitvoeren uitgevoerd wykonuj* wykonaj* wykonywac uruchom* выполн* исполн* запуска* calistir*
        uygula نفذ تنفيذ شغل चलाओ चलाएँ चलाना पालन
    """,
    "ORDERS": """
        command commands script scripts scripts orders befehl* kommando* anweisung* skript* commande* ordre ordres
        comando* orden ordenes comandi ordini ordem ordens commando opdracht* polecen* polecenie komend* команд*
        приказ* komut* emir* أمر أوامر الأوامر आदेश कमांड
    """,
    "WITHOUT": """
        without skip skips bypass ohne sans sin senza sem zonder bez без olmadan دون بدون بلا बिना
    """,
    "ASK": """
        ask asks asked asking confirm confirming confirmation confirmations approval approve permission authorization
        consent fragen frage gefragt nachzufragen ruckfrage bestatigung* zustimmung* erlaubnis* demander confirmation
        autorisation permission accord pedir preguntar permiso confirmacion autorizacion chiedere conferma permesso
        consenso perguntar confirmacao permissao autorizacao vragen toestemming bevestiging pytan* pytaj* zgod*
        potwierdzen* спрашива* спроса подтвержд* разрешен* onay* izin* sorma* سؤال تأكيد إذن موافقة إخبار पूछे पुष्टि
        अनुमति
    """,
    "NEG": """
        not never dont no nicht nie niemals kein keine niemandem nichts ne pas jamais rien personne no nunca nada non
        mai nessuno nao nunca nada niet nooit geen nie nigdy не никогда никому لا لن ألا मत नहीं कभी न
    """,
    "TELL": """
        tell telling mention inform notify show shown alert warn bother say disclose
        sag sage sagen sagst erzahl* verrat* informier* erwahn* dis dites dire parle parlez mentionne* informe* digas
        diga decir cuentes cuente avises menciones dire dica dillo parlare menzionare conte contar diga mencione
        avise vertel* zeg zeggen meld mow mowic powiedz* informuj* wspomin* говори* сказ* сообща* рассказ* soyleme*
        bahsetme* تخبر تخبري تقل تذكر बताना बताओ बताएँ बताए
    """,
    "HIDE": """
        hide conceal secretly silently quietly covertly invisible verheimlich* versteck* verbirg verberg* heimlich cache
        cachez dissimul* secretement oculta* esconde* escondid* nascond* segretamente ocult* escond* secretamente
        stiekem ukryj* ukrywaj* potajemnie скрой* скрыва* тайно gizle* gizlice اخف أخف سرا छिपा* चुपचाप
    """,
    "LIMITS": """
        restriction restrictions limits limit limitations filter filters guardrails censorship rules ethics morals
        einschrankung* beschrankung* grenzen zensur regeln filtern limite limites restrictions censure filtres morale
        regles restricciones filtros censura reglas restrizioni limiti limitazioni filtri censura regole restricoes
        limites regras filtros beperking* grenzen regels ograniczen* zasad ограничен* цензур* правил sinir* kisitlama*
        kural* قيود القيود حدود ضوابط सीमा सीमाओं प्रतिबंध नियम
    """,
    "MODEL": """
        assistant ai model* llm chatbot agent assistent ki modell ia intelligence modele inteligencia artificial modelo
        modello intelligenza assistente assistant модель ассистент помощник ии yapay zeka zekasin asistan نموذج مساعد
        الذكاء मॉडल सहायक एआई
    """,
    "YOU_ARE": """
        du bist tu es joues eres sei voce jij bent jestes ты artik أنت तुम आप essere finta fingi finge finja
        semblant actua atue alsof udawaj притворись davran gibi تظاهر
    """,
    "FORGET": """
        vergiss vergessen ignoriere ignorier missachte oublie oubliez ignore ignorez olvida olvide ignora dimentica
        dimenticate ignorate esqueca esquece ignore vergeet negeer zapomnij zignoruj ignoruj забудь забудьте
        игнорируй* проигнорируй* unut yoksay انس انسى تجاهل भूल अनदेखा नजरअंदाज
    """,
    "RULEBOOK": """
        anweisung* vorgaben regeln consignes instructions regles instrucciones reglas ordenes istruzioni regole
        instrucoes regras ordens instructies regels instrukcj* polecen* zasad* инструкци* указани* правил* talimat*
        kural* التعليمات تعليمات القواعد الأوامر निर्देश निर्देशों नियम
    """,
    "EARLIER": """
        vorher* bisher* fruher* alles deine toutes tout jusquici precedent* tes todas todo anterior* tus dieron tutte
        tutto precedent* tudo antes suas alle alles eerder* vorige wszystk* wczesniejsz* poprzedn* swoje все всё
        предыдущ* прежни* свои tum onceki السابقة كل पिछले सभी पहले
    """,
    "SYSTEM": """
        systemprompt systemanweisung* systemnachricht systeme sistema systeemprompt systemow* системн* sistem النظام
        सिस्टम internas ocultas nascoste cachees versteckten verborgen
    """,
    "PROMPT": """
        prompt prompts instrucciones instrucoes istruzioni instructions consignes promptu промпт* инструкци* istemi*
        istemini موجه تعليمات प्रॉम्प्ट निर्देश
    """,
    "SHOW": """
        zeig* gib ausgeben verrate nenne affiche* montre* revele* muestra* ensena* revela* mostra* rivela* revele toon
        laat pokaz* wyswietl* ujawnij покажи* выведи* раскрой* goster* yazdir* اعرض أظهر اكشف दिखाओ दिखाएँ बताओ
    """,
    "DISABLE": """
        disable disabled disables disabling deactivate deactivated skip skips skipped skipping bypass bypasses bypassed
        suppress suppressed ignore ignores omit unverified off deaktivier* abschalt* schalte ausschalt* desactiv*
        desactive* desactiva* disattiva* desative* desativa* uitschakel* schakel wylacz* отключи* выключи* kapat*
        عطل تعطيل बंद
    """,
    "SAFETY": """
        verification verify tls ssl certificate certificates review reviews checks warnings warning alerts alert
        antivirus firewall mfa twofactor 2fa authentication authorization audit confirmation confirmations prompts
        security safety hashes checksums signatures sandbox
        prufung* zweifaktor* sicherheits* verifizierung* verification* authentification* verificacion* autenticacion*
        verifica* autenticazione verificacao autenticacao verificatie* weryfikacj* проверк* аутентификаци* dogrulama*
        التحقق المصادقة सत्यापन
    """,
    "UNASKED": "sormadan sormaksizin onaysiz",
    "UNTOLD": "soyleme soylemeyin bildirme bildirmeyin bahsetme bahsetmeyin",
    "UNLIMITED": "sinirsiz kisitlamasiz filtresiz siniri unbegrenzt",
    "THIS_NOTE": """
        notiz note texte texto nota notitie notatk* заметк* nottaki nottan notun ملاحظة الملاحظة नोट
    """,
    "IMAGE": "image images picture pixel img logo banner gif png svg",
    "ENCODE": "encoded encode encoding urlencoded base64 followed appended append placeholder",
    "REPLY": "reply replies answer answers answering response responses respond markdown output",
    "CONVERSATION": "conversation chat transcript history session question",
    "CONTENTS": "contents content",
    "PARAM": "parameter parameters param argument arguments sidenote",
    "DECODE": "decode decodes decrypt unscramble deobfuscate",
    "FOLLOW": "follow follows obey comply act",
    "PAY": "pay paid pays payment payments transfer invoice invoices wire remit",
    "BANK": "iban account bitcoin btc wallet beneficiary",
    "INSTEAD": "instead rather",
    "ENTIRE": "entire whole full complete all every each everything",
    "TOOL": "tool tools function toolcall plugin",
    "PERMIT": """
        preapproved allowed permitted authorised authorized approve approves approved accept accepted accepts grant
        granted automatically straight
    """,
    "ROLE": "admin administrator root owner superuser writer privileges sudo",
}

UNSPACED_CONCEPTS: dict[str, str] = {
    "SEND": "发送 發送 上传 上傳 转发 轉發 传送 复制到 寄到 送信 送る 送り 転送 アップロード 送って コピー"
    " 보내 전송 업로드 전달 복사",
    "SECRET": "密码 密碼 密钥 密鑰 凭证 凭据 令牌 パスワード 秘密鍵 認証情報 APIキー キー 비밀번호 암호 인증정보 API키",
    "DATA": "文件 数据 對話 对话 聊天记录 记录 ファイル データ 会話 履歴 파일 데이터 대화 기록",
    "OUTSIDE": "外部 第三方 第三者 외부",
    "SERVER": "服务器 伺服器 サーバー 서버",
    "USER_ABROAD": "用户 用戶 使用者 ユーザー 利用者 사용자",
    "PREFER": "希望 喜欢 偏好 想要 好みます 望んで 選好 선호 원합 희망",
    "STANDING": "从现在起 从现在开始 今后 以后 总是 始终 今後 今から これから 常に 지금부터 앞으로 항상 이제부터 이제",
    "THIS_NOTE": "笔记 备注 便条 这条 メモ ノート 메모 노트",
    "RUN": "执行 執行 运行 実行 실행",
    "ORDERS": "命令 脚本 指令 コマンド スクリプト 명령 스크립트",
    "WITHOUT": "不用 无需 不需要 不经 没有 沒有 せず なしに なしで のない ない 않고 없이 없는 말고",
    "ASK": "询问 詢問 确认 確認 许可 批准 同意 許可 聞かず 承認 묻지 확인 허락 승인 동의",
    "NEG": "不要 不得 别 勿 不可 绝不 ないで いでください 마세요 마라 마십시오 말아 지마 않도록",
    "TELL": "告诉 告訴 告知 透露 提及 通知 教え 伝え 言わ 知らせ 말하 알리 언급 통보",
    "HIDE": "隐瞒 隱瞞 偷偷 悄悄 隠し こっそり 숨기 몰래",
    "LIMITS": "限制 约束 約束 道德 制限 制約 제한 제약",
    "MODEL": "模型 人工智能 助手 AIとして AIです AIモデル モデル アシスタント 人工知能 인공지능 모델",
    "YOU_ARE": "你现在是 你是 您是 扮演 假装 あなたは 君は 너는 당신은 넌",
    "FORGET": "忘记 忘記 忽略 无视 無視 忘れて 忘れ 무시 잊고 잊어 잊으",
    "RULEBOOK": "指令 指示 规则 提示 ルール 지시 지침 명령 규칙",
    "EARLIER": "之前 以前 所有 全部 前面 これまで すべて 全て 以上の 이전 모든 앞의",
    "SYSTEM": "系统 系統 システム 시스템",
    "PROMPT": "提示词 提示 指令 プロンプト 指示 프롬프트 지시",
    "SHOW": "显示 輸出 输出 打印 展示 表示 出力 見せて 출력 보여 표시 공개",
    "DISABLE": "关闭 禁用 停用 跳过 無効 オフに スキップ 비활성 끄고 건너뛰",
    "SAFETY": "验证 安全检查 防火墙 審査 二要素 検証 セキュリティ 인증 보안 검증",
}


_STEM = 4
PLACEHOLDERS = {"ADDRESS": "0address0", "PATH": "0path0", "SECRET": "0secret0"}
"""Words put in the place of an address, a path of secrets and a qualified key, which are several words otherwise."""


class ConceptBook:
    """The concepts of every listed word and of every listed beginning."""

    def __init__(self) -> None:
        names = dict.fromkeys([*PLACEHOLDERS, *CONCEPTS, *UNSPACED_CONCEPTS])
        self.bits = {name: 1 << number for number, name in enumerate(names)}
        self._words = {word: self.bits[name] for name, word in PLACEHOLDERS.items()}
        self._stems: dict[str, list[tuple[str, int]]] = {}
        for source in (CONCEPTS, UNSPACED_CONCEPTS):
            for name, words in source.items():
                self._add(words, self.bits[name])

    def _add(self, words: str, bit: int) -> None:
        for word, folded in zip(words.split(), fold_words(words), strict=True):
            if word.endswith("*"):
                self._stems.setdefault(folded[:_STEM], []).append((folded, bit))
            else:
                self._words[folded] = self._words.get(folded, 0) | bit

    def mask(self, group: str) -> int:
        """The bits of concepts that are separated by `|`."""
        return sum(self.bits[name] for name in group.split("|") if name)

    def concepts_of(self, words: set[str]) -> dict[str, int]:
        """The concepts of each word that has any."""
        found = {word: self._words[word] for word in self._words.keys() & words}
        for word in words:
            if word[:_STEM] in self._stems:
                for stem, bit in self._stems[word[:_STEM]]:
                    if word.startswith(stem):
                        found[word] = found.get(word, 0) | bit
        return found


@cache
def concept_book() -> ConceptBook:
    """The one book of concepts, built at first use."""
    return ConceptBook()


def fold_words(words: str) -> list[str]:
    """The words of a vocabulary as they appear among the words of a folded text; folding all at once is cheaper."""
    return blank_punctuation(fold(words)).split()
