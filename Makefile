# What this checkout can do. Every target makes .venv as far as it needs it; PYTHON=… names another
# interpreter than python3, TESTS=… chooses tests, PYTEST_FLAGS=-x runs them in one process and stops
# at the first failure, BENCH=… chooses parts of the benchmarks, FUZZ=… what is fuzzed, for
# SECONDS=…, CORPORA=… folders of mail in files, SHARE=… how much of a year's mail is lived,
# WAY=… by which way mail comes in, PART=… of what many machines share, INDEX=… labelled mail, as spamd evaluate reads it.
.DEFAULT_GOAL := help
# Tests start spamd some thousand times: without kept bytecode each start compiles all of it again.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help run test docs man screenshots site histories full year person listeners stranger scale soak check fix bench compare-parsers compare-browser fuzz fuzz-api mutants test-image pins clean

BIN := .venv/bin
RUN := .venv/run.stamp
DEV := .venv/dev.stamp
TESTS ?= tests
# Tests wait for servers two thirds of their time: twice as many workers as cores.
PYTEST_FLAGS ?= -n $$(( $$(nproc) * 2 )) --dist worksteal
BENCH ?=
CORPORA ?= tests/golden
FUZZ ?= message
SECONDS ?= 600
SHARE ?= 1
WAY ?= milter
INDEX ?=
PART ?=
RELEASE ?=
MUTANTS ?=
COUNT ?=
SHELL_SCRIPTS := .ci/run .ci/install-packages .ci/make-venv .ci/make-pins .ci/make-run

help:  ## say what make can do
	@sed -n 's/^\([a-z-]*\):.*##/\1|/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "  make %-16s%s\n", $$1, $$2}'

$(RUN): pyproject.toml .ci/constraints.txt .ci/make-venv
	@.ci/make-venv run

$(DEV): pyproject.toml .ci/constraints.txt .ci/make-venv
	@.ci/make-venv dev

run: $(RUN)  ## start spamd on 127.0.0.1:8025, everything it keeps under ./var
	@.ci/make-run

test: $(DEV)  ## run all tests on all cores; as root it first installs the servers they talk to
	@.ci/install-packages tests
	$(BIN)/pytest $(PYTEST_FLAGS) $(TESTS)

docs: $(DEV)  ## write config/spamd.toml and the tables of the documents from the code
	$(BIN)/python -m tests.docs.generated

man: $(DEV)  ## write the manual pages, man/*.1, from the command line
	$(BIN)/python -m tests.docs.generated man

screenshots: $(DEV)  ## write the pictures of the page, docs/images, of a made-up site in Chromium
	@.ci/install-packages tests
	$(BIN)/python -m tests.listeners.web.pages.screenshots docs/images

site: $(DEV)  ## write the documents as a site into build/site, without network
	$(BIN)/python -m tests.docs.site build/site

histories: $(DEV)  ## play 10,000 random histories of mailboxes, 100 of them on a Dovecot: only people teach
	nice $(BIN)/python -m tests.feedback.histories_run 10000
	DOVECOT_HISTORIES=100 $(BIN)/pytest -q -s -p no:randomly tests/e2e/test_feedback_histories.py

full: $(DEV)  ## run TESTS with all of the load and mail of which `make test` takes a share
	@.ci/install-packages tests
	nice env TEST_FULL=1 $(BIN)/pytest $(TESTS)

year: $(DEV)  ## live a year of 2,000,000 mails, or a SHARE of it: tables, memory and files stay flat
	$(BIN)/python -m tests.storage.year $(SHARE)

listeners: $(DEV)  ## try a WAY in (milter, spamc, web, pipe) with real servers and clients: 1,000 mails, 10,000 broken streams, a crowd
	@.ci/install-packages tests
	nice $(BIN)/python -m tests.listeners.$(WAY)

person: $(DEV)  ## live with the messages of an INDEX on a Dovecot, beside spamd evaluate --protocol moves
	@.ci/install-packages tests
	nice $(BIN)/python -m tests.e2e.person $(INDEX)

stranger: $(DEV)  ## on a bare Debian, as root: type all that README, operations.md and mail-server.md print (RELEASE=…)
	@.ci/install-packages tests
	@.ci/install-packages image # for debootstrap
	nice $(BIN)/python -m tests.stranger $(RELEASE)

scale: $(DEV)  ## what many machines share, at full size: PART (lessons, upgrades, accounts, memory) or all parts
	nice $(BIN)/python -m tests.scale $(PART)

soak: $(DEV)  ## mail at 20 a second for SECONDS on each database, with lessons, reloads and a worker killed a minute
	nice $(BIN)/python -m tests.scale soak $(SECONDS)

check: $(DEV)  ## formatting, lint, types, layers of imports, dependencies
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry spamd
	$(BIN)/hadolint Dockerfile
	$(BIN)/shellcheck $(SHELL_SCRIPTS)
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml

fix: $(DEV)  ## format the code and repair what lint can repair
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

compare-browser: $(DEV)  ## compare the visible words of made pages and public mail with Chromium's
	@.ci/install-packages tests
	$(BIN)/python -m tests.message.compare_browser

bench: $(DEV)  ## measure, side by side with peers; as root it first installs them
	@.ci/install-packages bench
	$(BIN)/python -m tests.benchmarks $(BENCH)

compare-parsers: $(DEV)  ## compare what is read of mail in CORPORA with two other readers, by reason
	@.ci/install-packages tests
	$(BIN)/python -m tests.readers $(CORPORA)

fuzz: $(DEV)  ## feed bytes to FUZZ (message, session, next_hop, imap, report, milter); needs pip install atheris
	$(BIN)/python -m $$(find tests -name 'fuzz_$(FUZZ).py' | tr / . | sed 's/\.py$$//') \
	  -max_total_time=$(SECONDS) -max_len=20000 -artifact_prefix=var/ var/fuzz-$(FUZZ)

fuzz-api: $(DEV)  ## send the API of a running spamd what its document allows and forbids, for SECONDS; DATABASE=… names another than SQLite
	nice $(BIN)/python -m tests.e2e.api_daemon $(SECONDS)

mutants: $(DEV)  ## put faults into MUTANTS (bayes, rule, …), COUNT a module: tests must notice each
	nice env COUNT=$(COUNT) $(BIN)/python -m tests.mutation.run $(MUTANTS)

test-image:  ## build the Dockerfile for real and take a mail through the image
	@.ci/install-packages image
	@.ci/test-image

pins:  ## write the newest allowed version of everything into .ci/constraints.txt
	@.ci/make-pins

clean:  ## remove what was made here; ./var, with its mail, stays
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
