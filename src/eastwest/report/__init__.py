"""Results for people: figures, drawings, whole pages. One idea: a report knows results, never how
they came about."""
