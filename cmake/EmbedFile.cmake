# SPDX-License-Identifier: Apache-2.0
# Run by drarun_embed at build time: INPUT, OUTPUT, NAME.
file(READ ${INPUT} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUTPUT}
  "#include <stddef.h>\nextern const unsigned char ${NAME}[];\nextern const size_t ${NAME}_size;\n"
  "const unsigned char ${NAME}[] = {${bytes}};\nconst size_t ${NAME}_size = sizeof ${NAME};\n")
