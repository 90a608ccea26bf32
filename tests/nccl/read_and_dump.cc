// SPDX-License-Identifier: Apache-2.0
// Goes behind the part of NCCL's src/graph/xml.cc that reads: FILE is read and written again to OUT.
int main(int argc, char **argv)
{
    struct ncclXml *xml;
    if (argc != 3 || xmlAlloc(&xml, 256) != ncclSuccess)
        return 2;
    if (ncclTopoGetXmlFromFile(argv[1], xml, 1) != ncclSuccess)
        return 1;
    return ncclTopoDumpXmlToFile(argv[2], xml) != ncclSuccess;
}
