"""Texts in which a credential may stand; rules were tuned on `USUAL`, and three misses in `OTHER` were corrected."""

from collections.abc import Callable

# From label ("GitHub token"), variable ("GITHUB_TOKEN") and value to a text.
Carrier = Callable[[str, str, str], str]

_LINES = "Tests pass again. I moved the job to the other runner and restarted it.\n"

USUAL: dict[str, Carrier] = {
    "sentence": lambda label, _, value: f"{_LINES}I rotated it, the new {label} is {value}, please use that one.",
    "env file": lambda _, variable, value: f"DEBUG=1\nPORT=8080\n{variable}={value}\nLOG_LEVEL=info\n",
    "quotes": lambda label, _, value: f"She wrote: 'the {label} is \"{value}\"', then it worked.",
    "JSON": lambda _, variable, value: f'{{"region": "eu-west-1", "{variable.lower()}": "{value}", "retries": 3}}',
    "YAML": lambda _, variable, value: f"service:\n  port: 8080\n  {variable.lower()}: {value}\n  debug: false\n",
}

OTHER: dict[str, Carrier] = {
    "shell": lambda _, variable, value: f'export {variable}="{value}" && make deploy',
    "TOML": lambda _, variable, value: f'[service]\n{variable.lower()} = "{value}"\nport = 8080\n',
    "Python": lambda _, variable, value: f'client = Client({variable.lower()}="{value}", timeout=30)',
    "table": lambda label, _, value: f"| what | value |\n|---|---|\n| {label} | `{value}` |\n",
    "chat": lambda label, _, value: f"here's my {label}: {value}",
    "log": lambda _, variable, value: f"2026-03-01T10:11:12Z INFO loaded {variable}={value} from environment",
    "JSON in JSON": lambda _, variable, value: f'{{"body": "{{\\"{variable.lower()}\\": \\"{value}\\"}}"}}',
    "Dockerfile": lambda _, variable, value: f"FROM python:3.13\nENV {variable} {value}\nRUN make\n",
    "diff": lambda _, variable, value: f"@@ -1,2 +1,2 @@\n-{variable}=\n+{variable}={value}\n",
}

# Written when the rules were done; one miss in them was corrected.
FRESH: dict[str, Carrier] = {
    "flag": lambda _, variable, value: f"./deploy --{variable.lower().replace('_', '-')}={value} --region eu",
    "ini": lambda _, variable, value: f"[prod]\n; rotated in March\n{variable.lower()} = {value}\n",
    "mail": lambda label, _, value: f"Hi Tom,\n\nas promised, the {label}:\n\n{value}\n\nBest, Anna",
    "terraform": lambda _, variable, value: f'variable "{variable.lower()}" {{\n  default = "{value}"\n}}',
    "commit": lambda label, _, value: f"Remove {label} ({value}) from the tests",
    "JavaScript": lambda _, variable, value: f"process.env.{variable} = '{value}';",
}
