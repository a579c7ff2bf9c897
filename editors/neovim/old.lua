-- Neovim 0.8 to 0.10, in init.lua.
vim.api.nvim_create_autocmd("FileType", {
  pattern = { "python", "yaml", "sh" },
  callback = function(event)
    local found = vim.fs.find({ "mblint.toml", ".mblint.toml", "pyproject.toml", ".git" }, {
      upward = true,
      path = vim.fs.dirname(vim.api.nvim_buf_get_name(event.buf)),
    })[1]
    vim.lsp.start({
      name = "mblint",
      cmd = { "mblint", "server" },
      root_dir = found and vim.fs.dirname(found) or vim.fn.getcwd(),
    })
  end,
})
