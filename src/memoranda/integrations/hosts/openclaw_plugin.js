/**
 * Memoranda in the memory slot of OpenClaw: a plugin that calls the installed `memoranda` program.
 *
 * `memoranda install openclaw` writes this file, and `memoranda uninstall openclaw` removes it; changes here are lost.
 *
 * Each call starts the program, with a JSON payload on its standard input and a deadline. A finished turn is first
 * written to the spool of the Memoranda home and synced to disk; a process that OpenClaw does not wait for records it.
 * OpenClaw's own memory files are not touched.
 */

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join, parse } from "node:path";
import { fileURLToPath } from "node:url";

const HOST = "openclaw";
const DIRECTORY = dirname(fileURLToPath(import.meta.url));
const SETTINGS = JSON.parse(readFileSync(join(DIRECTORY, "memoranda.json"), "utf8"));
const COMMAND = [SETTINGS.memoranda.command, ...SETTINGS.memoranda.args];
// The program itself gives up after four seconds, and needs some time to start on a busy machine.
const RECALL_MS = 6_000;
const TOOL_MS = 25_000;
const MAX_SESSIONS = 500;
const NO_ANSWER = "Memoranda did not answer. Continue without it; 'memoranda doctor' finds the cause.";
// A session key with one of these words belongs to a conversation with other people.
const SHARED_KEYS = new Set(["group", "channel", "direct", "dm"]);

/** Returns the arguments of the program: the event after the name of the host, and the user at the end, if any. */
function eventArguments(event, user) {
  const index = COMMAND.indexOf(HOST, COMMAND.indexOf("hook")) + 1;
  const options = user ? ["--user", user] : [];
  return [...COMMAND.slice(1, index), event, ...COMMAND.slice(index), ...options];
}

/** Runs the program; resolves to what it printed, or to "" when it failed or was late. Never rejects. */
function run(event, payload, user, timeoutMs, logger) {
  return new Promise((done) => {
    let child;
    try {
      child = spawn(COMMAND[0], eventArguments(event, user), {
        stdio: ["pipe", "pipe", "ignore"],
        cwd: parse(DIRECTORY).root,
        windowsHide: true,
      });
    } catch (error) {
      logger?.warn?.(`memoranda: ${COMMAND[0]} cannot be started: ${error.message}`);
      done("");
      return;
    }
    const parts = [];
    const timer = setTimeout(() => {
      logger?.warn?.(`memoranda: no answer to ${event} within ${timeoutMs} ms`);
      child.kill("SIGKILL");
      done("");
    }, timeoutMs);
    child.stdout.on("data", (part) => parts.push(part));
    child.stdin.on("error", () => {});
    child.on("error", (error) => {
      clearTimeout(timer);
      logger?.warn?.(`memoranda: ${COMMAND[0]} cannot be started: ${error.message}`);
      done("");
    });
    child.on("close", () => {
      clearTimeout(timer);
      done(Buffer.concat(parts).toString("utf8").trim());
    });
    child.stdin.end(JSON.stringify(payload));
  });
}

/** Resolves to the text that the program answers to an event; "" when there is none. */
async function ask(event, payload, user, logger) {
  const answer = await run(event, payload, user, RECALL_MS, logger);
  if (!answer) return "";
  try {
    const { text } = JSON.parse(answer);
    return typeof text === "string" ? text : "";
  } catch {
    logger?.warn?.(`memoranda: the answer to ${event} cannot be read`);
    return "";
  }
}

/** Returns whose memory a conversation uses: undefined for the owner's, else an id of a group or another person. */
function findUser(sessionKey, owners) {
  if (COMMAND.includes("--user") || !sessionKey || owners.includes(sessionKey)) return undefined;
  const parts = sessionKey.split(":");
  return parts.some((part) => SHARED_KEYS.has(part)) ? `openclaw:${parts.slice(2).join(":")}` : undefined;
}

/** Starts a process that records the spool and outlives OpenClaw. */
function startCapture(user, logger) {
  try {
    const child = spawn(COMMAND[0], eventArguments("capture", user), {
      stdio: "ignore",
      cwd: parse(DIRECTORY).root,
      detached: true,
      windowsHide: true,
    });
    child.on("error", (error) => logger?.warn?.(`memoranda: turns wait in ${SETTINGS.spool}: ${error.message}`));
    child.unref();
  } catch (error) {
    logger?.warn?.(`memoranda: turns wait in ${SETTINGS.spool}: ${error.message}`);
  }
}

/** Writes a turn to the spool; it is on disk when this returns. */
function spoolTurn(turn) {
  mkdirSync(SETTINGS.spool, { recursive: true, mode: 0o700 });
  const nanoseconds = `${BigInt(Date.now()) * 1_000_000n + (process.hrtime.bigint() % 1_000_000n)}`;
  const name = `${nanoseconds.padStart(20, "0")}-${randomBytes(4).toString("hex")}`;
  const staged = join(SETTINGS.spool, `.${name}.tmp`);
  const file = openSync(staged, "wx", 0o600);
  try {
    writeFileSync(file, JSON.stringify(turn));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(staged, join(SETTINGS.spool, `${name}.json`));
  if (process.platform !== "win32") {
    const directory = openSync(SETTINGS.spool, "r");
    try {
      fsyncSync(directory);
    } finally {
      closeSync(directory);
    }
  }
}

function hasWaitingTurns() {
  try {
    return readdirSync(SETTINGS.spool).some((name) => name.endsWith(".json"));
  } catch {
    return false;
  }
}

/** Returns the last message of the user and the last answer to it, as plain text. */
function lastTurn(messages) {
  const spoken = (messages ?? []).map((message) => ({ role: message?.role, content: textOf(message?.content) }));
  const user = spoken.findLastIndex((message) => message.role === "user" && message.content);
  if (user < 0) return [];
  const answer = spoken.slice(user + 1).findLast((message) => message.role === "assistant" && message.content);
  return answer ? [spoken[user], answer] : [spoken[user]];
}

function textOf(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .filter((part) => part?.type === "text" && typeof part.text === "string")
    .map((part) => part.text)
    .join("\n\n");
}

export default {
  id: "memoranda",
  name: "Memoranda",
  description: "The memory that all of your agents share",
  kind: "memory",
  register(api) {
    const { logger } = api;
    const owners = Array.isArray(api.pluginConfig?.owner) ? api.pluginConfig.owner : [];
    const memoryTexts = new Map();

    /** Resolves to the notes and the profile; read once for each session, because its prompt does not change. */
    function memoryText(sessionId, user) {
      if (!memoryTexts.has(sessionId)) {
        if (memoryTexts.size >= MAX_SESSIONS) memoryTexts.delete(memoryTexts.keys().next().value);
        memoryTexts.set(sessionId, ask("SessionStart", { session_id: sessionId }, user, logger));
      }
      return memoryTexts.get(sessionId);
    }

    for (const tool of SETTINGS.tools) {
      api.registerTool(
        (context) => ({
          name: tool.name,
          label: "Memoranda",
          description: tool.description,
          parameters: tool.parameters,
          async execute(_id, params) {
            const payload = { tool: tool.name, arguments: params ?? {}, session_id: context?.sessionId ?? "" };
            const user = findUser(context?.sessionKey, owners);
            const answer = await run("ToolCall", payload, user, TOOL_MS, logger);
            const text = answer || JSON.stringify({ success: false, error: NO_ANSWER });
            return { content: [{ type: "text", text }] };
          },
        }),
        { name: tool.name },
      );
    }

    api.on(
      "before_prompt_build",
      async (event, context) => {
        const sessionId = context?.sessionId ?? "";
        const user = findUser(context?.sessionKey, owners);
        const prompt = event.currentUserMessage ?? event.prompt ?? "";
        // No person wrote the prompts of heartbeats and jobs.
        const isFromUser = !context?.trigger || context.trigger === "user";
        const [memory, recalled] = await Promise.all([
          memoryText(sessionId, user),
          isFromUser ? ask("UserPromptSubmit", { prompt, session_id: sessionId }, user, logger) : "",
        ]);
        const result = {};
        if (memory) result.appendSystemContext = memory;
        if (recalled) result.prependContext = recalled;
        return result;
      },
      { timeoutMs: RECALL_MS + 2_000 },
    );

    api.on("agent_end", (event, context) => {
      if (!context?.sessionId) return;
      const agent = context.agentId || "main";
      const user = findUser(context.sessionKey, owners);
      spoolTurn({
        session_id: context.sessionId,
        database: join(SETTINGS.host_directory, "agents", agent, "agent", "openclaw-agent.sqlite"),
        user: user ?? null,
        at: Date.now() / 1000,
        messages: lastTurn(event.messages),
      });
      startCapture(user, logger);
    });

    if (api.registrationMode === "full" && hasWaitingTurns()) {
      // A process was killed, or the program could not run, so earlier turns are not recorded yet.
      startCapture(undefined, logger);
    }
  },
};
