# cmake -DIN=FILE -DOUT=FILE.c -P embed.cmake: a C file with the bytes of IN and a zero behind them.
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "#include \"tools/domus/config_parts.h\"\n\nconst unsigned char config_yaml[] = {\n${bytes}0};\n")
