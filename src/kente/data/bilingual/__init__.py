"""The grammar behind `data.grammar`: words, phrases, clauses and sentences, said in English and French at once."""
