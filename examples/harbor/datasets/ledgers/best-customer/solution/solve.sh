#!/bin/bash
echo "Ben" > "${HARBOR_ROOT:-}/app/answer.txt"
