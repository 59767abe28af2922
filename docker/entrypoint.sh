#!/bin/sh
# Arguments go to molscore, unless they are a command of their own.
#
# `docker run IMAGE predict ...` means molscore. Workflow engines start an image differently:
# Nextflow with `bash -ue SCRIPT`, CWL runners with the whole command (`molscore predict ...`),
# GitLab with `sh -c ...`. A path is never a molscore command, so it is taken as a program.
case "${1-}" in
  */* | bash | sh | dash | env | molscore | python | python3 | ps | cat | tail | sleep)
    exec "$@" ;;
  *)
    exec molscore "$@" ;;
esac
