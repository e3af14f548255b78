"""What the pages have in common: templates and the frame around them, static files, forms, filters, charts, error
pages.
"""
