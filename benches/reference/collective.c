/* An MPI program as users have them: many small collectives, and a line that says how long they took and where. What
 * `tailback app` is tried with under launchers whose distribution has no program of its own. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { TIMES = 200, MOST = 64 };

int main(int argc, char **argv) {
    char names[MOST][MPI_MAX_PROCESSOR_NAME], name[MPI_MAX_PROCESSOR_NAME] = {0};
    double mine = 1.0, sum = 0.0;
    int rank, size, length, hosts = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > MOST)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Get_processor_name(name, &length);
    MPI_Gather(name, sizeof name, MPI_CHAR, names, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int time = 0; time < TIMES; time++)
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double took = MPI_Wtime() - start;
    if (rank == 0 && sum == size) {
        for (int at = 0; at < size; at++) {
            int known = 0;
            for (int other = 0; other < at; other++)
                known |= strcmp(names[at], names[other]) == 0;
            hosts += !known;
        }
        printf("%.6f s by %d processes on %d hosts\n", took, size, hosts);
    }
    MPI_Finalize();
    return 0;
}
