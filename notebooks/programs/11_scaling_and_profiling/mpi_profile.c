/* Counts the calls, bytes and seconds of a program's MPI routines, through MPI's profiling interface (PMPI).
 *
 * Every MPI function exists under a second name, PMPI_...; a library that defines MPI_Allreduce itself and calls
 * PMPI_Allreduce inside sees each call (MPI standard 4.0, chapter 15). The program is neither changed nor linked again:
 *
 *     mpicc -shared -fPIC -O2 -o libmpi_profile.so mpi_profile.c
 *     MPI_PROFILE=profile LD_PRELOAD=$PWD/libmpi_profile.so mpirun -np 2 python train.py
 *
 * At the end rank r writes profile.r.csv: a line for each routine and data type, bytes as this rank's own contribution.
 * A program can say what is counted: MPI_Pcontrol(0) stops, (1) goes on, (2) forgets what was counted and goes on.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 64
static struct row { const char *routine; char type[MPI_MAX_OBJECT_NAME]; long calls; double bytes, seconds; } rows[ROWS];
static int used, is_off;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* Horovod calls from a thread of its own */

static void count(const char *routine, long elements, MPI_Datatype type, double begin) {
    double seconds = PMPI_Wtime() - begin;
    int size = 0, length, i;
    char name[MPI_MAX_OBJECT_NAME] = "";
    if (is_off) return;
    if (type != MPI_DATATYPE_NULL) {
        PMPI_Type_size(type, &size);
        PMPI_Type_get_name(type, name, &length);
    }
    pthread_mutex_lock(&lock);
    for (i = 0; i < used && (strcmp(rows[i].routine, routine) || strcmp(rows[i].type, name)); i++) {}
    if (i == used && used < ROWS) rows[used++] = (struct row){.routine = routine}; /* zeros else */
    if (i < ROWS) {
        strcpy(rows[i].type, name);
        rows[i].calls++, rows[i].bytes += (double)elements * size, rows[i].seconds += seconds;
    }
    pthread_mutex_unlock(&lock);
}

/* A function that calls the real one under its second name, and counts. */
#define PROFILED(name, parameters, arguments, elements, type) \
    int MPI_##name parameters { double begin = PMPI_Wtime(); int status = PMPI_##name arguments; \
                                count("MPI_" #name, elements, type, begin); return status; }

PROFILED(Allreduce, (const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (s, r, n, t, o, c), n, t)
PROFILED(Bcast, (void *b, int n, MPI_Datatype t, int root, MPI_Comm c), (b, n, t, root, c), n, t)
PROFILED(Reduce, (const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, int root, MPI_Comm c),
         (s, r, n, t, o, root, c), n, t)
PROFILED(Gather, (const void *s, int n, MPI_Datatype t, void *r, int m, MPI_Datatype u, int root, MPI_Comm c),
         (s, n, t, r, m, u, root, c), n, t)
PROFILED(Gatherv, (const void *s, int n, MPI_Datatype t, void *r, const int m[], const int d[], MPI_Datatype u,
         int root, MPI_Comm c), (s, n, t, r, m, d, u, root, c), n, t)
PROFILED(Allgather, (const void *s, int n, MPI_Datatype t, void *r, int m, MPI_Datatype u, MPI_Comm c),
         (s, n, t, r, m, u, c), n, t)
PROFILED(Allgatherv, (const void *s, int n, MPI_Datatype t, void *r, const int m[], const int d[], MPI_Datatype u,
         MPI_Comm c), (s, n, t, r, m, d, u, c), n, t)
PROFILED(Send, (const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c), (b, n, t, to, tag, c), n, t)
PROFILED(Isend, (const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *q),
         (b, n, t, to, tag, c, q), n, t)
PROFILED(Barrier, (MPI_Comm c), (c), 0, MPI_DATATYPE_NULL)

int MPI_Pcontrol(const int level, ...) {
    is_off = level == 0;
    if (level == 2) used = 0;
    return MPI_SUCCESS;
}

int MPI_Finalize(void) {
    char file[4096];
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(file, sizeof file, "%s.%d.csv", getenv("MPI_PROFILE") ? getenv("MPI_PROFILE") : "mpi_profile", rank);
    FILE *out = fopen(file, "w");
    if (out) {
        fprintf(out, "routine,type,calls,bytes,seconds\n");
        for (int i = 0; i < used; i++)
            fprintf(out, "%s,%s,%ld,%.0f,%.9f\n", rows[i].routine, rows[i].type, rows[i].calls, rows[i].bytes,
                    rows[i].seconds);
        fclose(out);
    }
    return PMPI_Finalize();
}
