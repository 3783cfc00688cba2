// OWNER_MARK: `memoranda install opencode` writes this file, `memoranda uninstall opencode` removes it.
// It adds the memory and relevant excerpts of earlier conversations to a prompt, and records sessions.
import { spawn } from "node:child_process"
import { homedir } from "node:os"
import { join, resolve as resolvePath } from "node:path"

const COMMAND = []
const OPTIONS = []
// The command answers within two seconds; starting it may take longer on a busy machine.
const TIMEOUT = 5000

// Resolves to the context for a prompt; to "" when there is none, or when the command failed or was late.
function askForContext(payload) {
  return new Promise((resolve) => {
    const finish = (answer) => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(answer).hookSpecificOutput.additionalContext)
      } catch {
        resolve("") // Without an answer, the prompt continues without context.
      }
    }
    let timer, output = ""
    const child = start([payload.hook_event_name], { stdio: ["pipe", "pipe", "ignore"] }, finish)
    if (!child) return
    timer = setTimeout(() => child.kill(), TIMEOUT)
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (text) => (output += text))
    child.on("close", () => finish(output))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(payload))
  })
}

function recordSession(sessionID) {
  const data = join(process.env.XDG_DATA_HOME || join(homedir(), ".local", "share"), "opencode")
  const database = resolvePath(data, process.env.OPENCODE_DB || "opencode.db")
  // The process must outlive OpenCode, because `opencode run` exits at once.
  const args = ["capture", "--transcript", database, "--session", sessionID]
  start(args, { detached: true, stdio: "ignore" }, () => {})?.unref()
}

// Starts the program, or calls `fail` with "" when it cannot be started.
function start(args, options, fail) {
  try {
    const child = spawn(COMMAND[0], [...COMMAND.slice(1), ...args, ...OPTIONS], { windowsHide: true, ...options })
    child.on("error", () => fail(""))
    return child
  } catch {
    fail("") // The program was moved or removed; `memoranda doctor` reports that.
  }
}

function newPartID(parts) {
  // OpenCode sorts parts by id, and an id begins with the time. This id comes after those of the other parts.
  const letters = "0123456789abcdefghijklmnopqrstuvwxyz"
  const random = Array.from({ length: 13 }, () => letters[Math.floor(Math.random() * letters.length)]).join("")
  const last = parts.map((part) => part.id).sort().at(-1)
  return `${last.slice(0, 16)}z${random}`
}

export const Memoranda = async () => {
  const subAgents = new Set()
  const compacted = new Set()
  return {
    event: async ({ event }) => {
      const sessionID = event.properties?.sessionID
      if (event.type === "session.created" && event.properties?.info?.parentID) subAgents.add(event.properties.info.id)
      if (event.type === "session.compacted") compacted.add(sessionID)
      if (event.type === "session.idle" && !subAgents.has(sessionID)) recordSession(sessionID)
    },
    // OpenCode stores only what a command expands to. The importer finds here what the user typed.
    "command.execute.before": async ({ command, arguments: words }, { parts }) => {
      const part = parts.find(({ type }) => type === "text" || type === "subtask")
      if (part) part.metadata = { ...part.metadata, memoranda_typed: `/${command} ${words}`.trim() }
    },
    "chat.message": async (input, output) => {
      const { sessionID } = input
      const typed = output.parts.filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
      if (!typed.length || subAgents.has(sessionID)) return
      const text = await askForContext({
        hook_event_name: "UserPromptSubmit",
        session_id: sessionID,
        prompt: typed.map((part) => part.metadata?.memoranda_typed ?? part.text).join("\n"),
        source: compacted.delete(sessionID) ? "compact" : "",
      })
      if (!text) return
      const id = newPartID(output.parts)
      output.parts.push({ id, sessionID, messageID: output.message.id, type: "text", text, synthetic: true })
    },
  }
}
