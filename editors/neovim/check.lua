-- Checks the configuration in a real Neovim: nvim --headless -u NONE -l check.lua FILE LINE COLUMN
-- Prints what Neovim shows for the file: diagnostics, the hover at a place, lenses, titles of actions. MBLINT is the program.

local here = vim.fs.dirname(vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p"))
local path, line, column = arg[1], tonumber(arg[2]), tonumber(arg[3])
vim.opt.runtimepath:prepend(here)
vim.cmd("filetype on")
dofile(here .. "/init.lua")
vim.lsp.config("mblint", { cmd = { vim.env.MBLINT or "mblint", "server" } })
vim.cmd.edit(path)
local buffer = vim.api.nvim_get_current_buf()

local function wait(what, condition)
  if not vim.wait(90000, condition, 50) then
    io.stderr:write("no " .. what .. "\n")
    os.exit(1)
  end
end

wait("client", function()
  local client = vim.lsp.get_clients({ name = "mblint", bufnr = buffer })[1]
  return client ~= nil and client.initialized
end)
wait("diagnostics", function()
  return #vim.diagnostic.get(buffer) > 0
end)
for _, found in ipairs(vim.diagnostic.get(buffer)) do
  print(("diagnostic %s %d:%d"):format(found.code, found.lnum + 1, found.col + 1))
end

local client = vim.lsp.get_clients({ name = "mblint", bufnr = buffer })[1]
local function ask(method, params)
  local answer = client:request_sync(method, params, 90000, buffer)
  assert(answer and answer.err == nil, vim.inspect(answer))
  return answer.result
end

local document = { uri = vim.uri_from_bufnr(buffer) }
local place = { line = line - 1, character = column - 1 }
local hover = ask("textDocument/hover", { textDocument = document, position = place })
print("hover " .. vim.split(hover.contents.value, "\n")[1])
for _, lens in ipairs(ask("textDocument/codeLens", { textDocument = document })) do
  print("lens " .. lens.command.title)
end
for _, action in
  ipairs(ask("textDocument/codeAction", {
    textDocument = document,
    range = { start = place, ["end"] = place },
    context = { diagnostics = {} },
  }))
do
  print("action " .. action.title)
end

-- A change in the buffer, which is never written: MBLINT_FROM becomes MBLINT_TO, and the finding goes.
local from, to, code = vim.env.MBLINT_FROM, vim.env.MBLINT_TO, vim.diagnostic.get(buffer)[1].code
if from ~= nil then
  for number, content in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
    vim.api.nvim_buf_set_lines(buffer, number - 1, number, false, { (content:gsub(vim.pesc(from), to)) })
  end
  wait("end of " .. code, function()
    return vim.iter(vim.diagnostic.get(buffer)):all(function(found)
      return found.code ~= code
    end)
  end)
  print("mended " .. code)
end
vim.cmd("qall!")
