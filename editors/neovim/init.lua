-- What goes well with it in init.lua; every line is a matter of taste.

vim.lsp.enable("mblint")

vim.api.nvim_create_autocmd("LspAttach", {
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client == nil or client.name ~= "mblint" then
      return
    end
    -- The lines above recipes: layout and memory. They are fetched again whenever they may have changed.
    vim.lsp.codelens.refresh({ bufnr = event.buf })
    vim.api.nvim_create_autocmd({ "BufEnter", "InsertLeave", "TextChanged" }, {
      buffer = event.buf,
      callback = function()
        vim.lsp.codelens.refresh({ bufnr = event.buf })
      end,
    })
    -- Keys and values while typing.
    vim.lsp.completion.enable(true, client.id, event.buf, { autotrigger = true })
  end,
})
-- K shows what a key resolves to, gra what can be done about a finding (Neovim's own defaults).
