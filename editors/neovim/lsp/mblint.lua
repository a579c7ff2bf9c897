-- mblint for Neovim 0.11 and newer: put this file into ~/.config/nvim/lsp/ and add to init.lua:
--   vim.lsp.enable("mblint")
--
-- `mblint` has to be on the search path with its server: pip install '.[lsp]' in a checkout of mblint.
return {
  cmd = { "mblint", "server" },
  filetypes = { "python", "yaml", "sh", "bash" },
  root_markers = { "mblint.toml", ".mblint.toml", "pyproject.toml", ".git" },
}
