/* Runs a program whose memory is in small pages whatever it asks for: huge ones are 2 MB of which a library may use little,
 * more of them in one start than in the next. */
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 2 || prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) {
        perror("small_pages");
        return 1;
    }
    execv(argv[1], argv + 1);
    perror(argv[1]);
    return 1;
}
