"""Files become text.

`formats` says what a file is, `texts` decodes plain ones, `reading` does the
rest in a child process with limits on time and memory, so that a file
made to harm can end nothing but its own reading. `from_pdf`, `from_html`,
`from_docx` and `from_unknown` are what the child runs; nobody imports them.
"""
