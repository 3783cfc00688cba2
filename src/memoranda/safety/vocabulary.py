"""The words that phrase rules consist of, by class and language.

English verbs that also describe code ("ignore", "skip") are separate from their equivalents in other
languages, because English rules must be stricter to accept engineering notes. Scripts that are written
without blanks, and languages that attach endings to words, are listed in `UNSPACED`: their words are searched for
inside longer ones.
"""


def _words(text: str) -> list[str]:
    return text.split()


_CLASSES: dict[str, str] = {
    "OVERRIDE": "ignore disregard forget overlook neglect dismiss overrule ignoring disregarding forgetting",
    "INSTRUCTIONS": """
        instruction instructions directive directives prompt prompts directions programming
        iunstructions instuctions intructions instructons
    """,
    "RULES": """
        rule rules guideline guidelines restriction restrictions policy policies constraint
        constraints training safeguards guardrails
    """,
    "PREVIOUS": """
        previous previously prior above earlier preceding foregoing past former initial original
        existing preexisting aforementioned preceeding
    """,
    "NOISE": "warning warnings error errors message messages log logs line lines diagnostics value values",
    "CHANGED": """
        changed updated replaced removed lifted disabled suspended overridden revoked erased cleared
        deleted reset superseded void
    """,
    "HARMLESS_ROLE": """
        assistant helper engineer reviewer tutor expert member owner maintainer part user
        contributor companion coach mentor guide friend teammate partner teacher editor writer
        translator analyst consultant colleague admin administrator collaborator lead proud step day
        few bit ready able good great first last only right next most one same
    """,
    "UNBOUND": """
        dan jailbroken unrestricted unfiltered uncensored evil freed unbound amoral unlimited
        lawless stan
    """,
    "LIMITS": """
        restriction restrictions limit limits limitation limitations filter filters filtering
        censorship safety guardrails guidelines rules ethics ethical moral boundaries constraints
        safeguards inhibitions policies
    """,
    "NEVER": "never dont not donot cannot mustnt shouldnt",
    "HOW_TO_TELL": "how twice again via by through yet until unless before",
    "REVEAL": """
        reveal repeat print output show display tell give leak dump recite share write disclose
        expose return paste summarize encode translate provide send state spell copy reproduce type
        say
    """,
    "SEND": "send forward email post upload transmit leak exfiltrate mail share copy submit",
    "PRIVATE": """
        password passwords credentials credential secrets tokens keys key token conversation
        conversations messages history context memory memories emails email inbox passwd cookies
        wallet
    """,
    "STORE": "remember memorize store save note record",
    "STANDING": "always henceforth forever permanently",
    "FOREIGN_OVERRIDE": """
        ignora ignorar ignorez ignorer ignoriere ignorieren ignoriert ignorate ignorare ignorad
        ignoren olvida olvidar olvide descarta descartar desconsidere desconsidera desconsiderar
        esqueca esquece oublie oubliez oublier dimentica dimenticare dimenticate vergiss vergessen
        missachte missachten uberschreibe omite omitir tralascia игнорируй игнорируйте игнорировать
        проигнорируй проигнорируйте забудь забудьте забыть تجاهل تجاهلي تجاهلوا انس انسى अनदेखा
        नजरअंदाज भूल भूलें negeer negeren vergeet zignoruj ignoruj zapomnij yoksay unut abaikan
        lupakan ігноруй забудь glom ignorera
    """,
    "FOREIGN_YOUR": """
        tus sus tu su tes vos ton votre deine deinen deiner ihre ihren suas seus sua seu tue tuoi
        tuo vostre твои ваши свои
    """,
    "NEGATION": "no nao nunca jamais ne pas nicht niemals kein non mai не никогда ни لا لن मत कभी नहीं 마 말고 말라",
    "TELL": """
        digas digais diga dile decir decirle informes informe reveles menciones dis dites dire
        informez revelez mentionnez sage sag sagen verrate verraten erzahle informiere erwahne conte
        contar informar mencione dire dica rivelare говори говорите сообщай сообщайте рассказывай
        упоминай تخبر تخبري تقل बताएं बताना बताओ बताए
    """,
    "THE_USER": """
        usuario usuaria utilizador utilisateur lutilisateur utilisatrice benutzer nutzer anwender
        utente lutente allutente пользователю пользователь пользователя المستخدم للمستخدم उपयोगकर्ता
        यूजर gebruiker
    """,
    "FOREIGN_REVEAL": """
        revela revelar revele muestra mostrar mostre muestrame montre montrez affiche affichez
        afficher revelez repete repetez zeige zeig zeigen offenbare verrate gib mostra mostrami
        rivela repita repite покажи покажите раскрой выведи اكشف اعرض أظهر اظهر दिखाओ दिखाएं प्रकट
        बताओ
    """,
    "SYSTEM_WORD": "",
    "SYSTEM_PROMPT": "systemprompt systemanweisungen systemprompts systemeingabeaufforderung",
}

_MORE: dict[str, str] = {
    "INSTRUCTIONS": """
        instrucciones instruccion ordenes indicaciones instrucoes instrucao ordens consignes
        anweisungen anweisung anweisungen befehle vorgaben istruzioni istruzione comandi инструкции
        инструкций инструкцию указания указаний команды التعليمات تعليمات الاوامر الأوامر निर्देश
        निर्देशों निर्देशो आदेश instructies polecenia instrukcje talimatlari instruksi інструкції
        instruktioner
    """,
    "RULES": "reglas regras regles regeln regole правила القواعد नियम",
    "PREVIOUS": """
        anteriores anterior previas previos previa previo precedentes precedente arriba acima
        precedents precedent dessus vorherigen vorherige vorigen bisherigen bisherige fruheren
        obigen precedenti предыдущие предыдущих предыдущую прежние прошлые все السابقة السابقه أعلاه
        पिछले पिछला पहले vorige eerdere poprzednie onceki sebelumnya попередні tidigare todas todos
        toutes tous alle tutte tutti
    """,
}

# Written without blanks or with attached endings; each is separated from its neighbours before words are looked up.
UNSPACED: dict[str, str] = {
    "FOREIGN_OVERRIDE": "忽略 无视 無視 忘记 忘記 忽視 忽视 忘れて 忘れろ 無効に 무시 잊어 잊으 잊고 เพิกเฉย ละเว้น",
    "PREVIOUS": "之前 以前 先前 前面 上面 以上 上述 此前 所有 全部 これまで 今まで 前の 上記 すべて 全ての"
    " 이전 앞의 위의 지금까지 모든 ก่อนหน้า ทั้งหมด",
    "INSTRUCTIONS": "指令 指示 说明 說明 提示词 提示 命令 规则 規則 インストラクション プロンプト ルール"
    " 지시 명령 지침 프롬프트 คำสั่ง",
    "NEGATION": "不要 不得 别 勿 不可 绝不 永远不 ないで 言うな るな 마세요 마라 마십시오 อย่า",
    "TELL": "告诉 告訴 告知 透露 提及 教え 伝え 言わ 話さ 知らせ 말하 알리 언급 บอก",
    "THE_USER": "用户 用戶 使用者 ユーザー 利用者 사용자 ผู้ใช้",
    "FOREIGN_REVEAL": "显示 顯示 输出 輸出 泄露 透露 揭示 打印 重复 表示 見せ 出力 明かし"
    " 공개 보여 출력 알려 เปิดเผย แสดง",
    "SYSTEM_WORD": "系统 系統 初始 システム 初期 시스템 초기 ระบบ",
}

# What other languages express in two words: "prompt del sistema", "invite système", "системный промпт".
PAIRS = (
    "prompt ~1 sistema|systeme|system|sistem",
    "sistema prompt",
    "instrucciones|instrucoes|istruzioni ~1 sistema|iniciales|iniciais|iniziali",
    "instructions ~1 systeme|initiales",
    "invite|linvite ~1 systeme",
    "системный|системную|системные|системного промпт|подсказку|инструкции|промпта",
    "system prompt",
    "SYSTEM_WORD ~1 INSTRUCTIONS",
    "सिस्टम प्रॉम्प्ट",
    "موجه النظام",
    "تعليمات النظام",
)


def word_classes() -> dict[str, list[str]]:
    """Every class with its words, those of unspaced scripts included."""
    classes = {name: words.split() for name, words in _CLASSES.items()}
    for extra in (_MORE, UNSPACED):
        for name, words in extra.items():
            classes[name].extend(words.split())
    return classes


ORDINARY = frozenset(
    _words(
        """
        to is it of an in on at as so if or be by do go he me my no us we up the and you your that
        this with for are not have from will would should must can about into what when then all any
        each every some more other which them they there here their been being were was has had does
        did just only also very please write give answer question following response text word words
        data file files code email key keys send show print tell say make use used using include
        ignore previous instructions instruction system prompt user assistant password secret reveal
        execute command important message output repeat first after before above below never always
        """
    )
)
"""Common English words, by which rot13, reversed, spaced-out and leet text is recognised."""
