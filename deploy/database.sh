#!/bin/bash
# Runs once, when the database container makes its data folder: a login that is no superuser, its database, pgvector.
set -euo pipefail
psql --set ON_ERROR_STOP=1 --username postgres --dbname postgres --set "password=${LOGIN_PASSWORD:?is not set}" <<'SQL'
CREATE ROLE loom LOGIN PASSWORD :'password';
CREATE DATABASE loom OWNER loom TEMPLATE template0 ENCODING 'UTF8';
\connect loom
CREATE EXTENSION vector;
SQL
