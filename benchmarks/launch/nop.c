/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that does nothing: what is left is the launcher's own time. */
int main(void)
{
    return 0;
}
