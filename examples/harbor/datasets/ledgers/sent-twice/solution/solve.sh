#!/bin/bash
echo "42.50" > "${HARBOR_ROOT:-}/app/answer.txt"
