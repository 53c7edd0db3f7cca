"""Text as people have it: sentences in running text, pages and files, and what must survive their translation. Nothing here needs torch."""
